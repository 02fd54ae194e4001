// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/lab/experiment.hpp"
#include "affinityctl/present/document.hpp"
#include "affinityctl/present/output.hpp"
#include "affinityctl/verbs/policy_set.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/text.hpp"
#include "experiments/latency.hpp"
#include "topology/reader.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>

#include <fmt/format.h>

namespace affinityctl {

namespace experiments = affinityd::experiments;
namespace topology = affinityd::topology;
using affinityd::counted;
using affinityd::CpuSet;
using affinityd::grouped;
using affinityd::Result;
using experiments::PairChoice;
using nlohmann::json;

namespace {

const std::map<std::string, PairChoice> pair_choices{{"auto", PairChoice::automatic},
                                                     {"core", PairChoice::core},
                                                     {"llc", PairChoice::llc},
                                                     {"all", PairChoice::all}};

struct MeasureLatencyOptions {
    ExperimentOptions common;
    std::string pairs = "auto";
    std::string means = "cas";
    std::string from; ///< "": this machine is measured
    experiments::PingPong how;
};

/// Latencies that were measured here or read from a table.
struct LatencySource {
    const topology::Latencies& latencies;
    const experiments::LatencyMatrix* matrix = nullptr; ///< null: of a foreign table
    const topology::Topology* topology = nullptr;       ///< null: not known
    std::string name;   ///< the model of the CPUs, or the table's name; foreign text
    double seconds = 0; ///< that it took
    std::vector<std::string> remarks{};
};

constexpr std::size_t few_pairs = 12, most_groups_told = 12;
constexpr double least_range = 2, least_shade = 0.02; ///< a ratio; of the farthest

std::string ns_words(double ns) { return fmt::format("{:.{}f}", ns, ns < 100 ? 1 : 0); }

const Field distance_fields[] = {{"name", "", "text", "as same LLC, or across sockets"},
                                 {"pairs", "", "count", "that were measured"},
                                 {"median", "", "number", "ns for one way"},
                                 {"least", "", "number", "of all pairs"},
                                 {"most", "", "number", "of all pairs"}};
const Field level_fields[] = {{"ns", "", "number", "within a group"},
                              {"groups", "", "cpus[]", "of each group"}};
const Field pairs_count_fields[] = {{"measured", "", "count", "pairs"}, {"possible", "", "count", "pairs"}};
/// The first four are those of topology::to_json.
const Field latency_fields[] = {
    {"cpus", "", "cpus", "that were measured"},
    {"ns", "", "any[]", "for one way: a row for each CPU, with those before it; null: not measured"},
    {"model", "", "text*", "of the CPUs"},
    {"places", "", "any[]*", "package and core of each CPU"},
    {"source", "", "text", "model of the CPUs, or name of the table"},
    {"pairs", "", "object", "how many were measured", pairs_count_fields},
    {"levels", "", "object[]", "groups of CPUs that are near each other, fine to coarse", level_fields},
    {"level_names", "", "text[]", "of each level; empty: the topology has no word for it"},
    {"group_names", "", "any[]", "of each group, by level; null: a foreign table"},
    {"distances", "", "object[]", "near to far", distance_fields},
    {"findings", "", "text[]", "sentences"},
    {"meaning", "", "text", "what it means for policies"},
    {"remarks", "", "text[]", "on how far the figures can be trusted"},
    {"low", "", "any[]*", "low ends of the 95 % intervals, as ns"},
    {"high", "", "any[]*", "high ends of them"},
    {"median", "", "any[]*", "medians, as ns"},
    {"means", "", "text*", "cas or store"},
    {"samples", "", "count*", "of each pair"},
    {"round_trips", "", "count*", "in a sample"},
    {"taken_again", "", "count*", "samples that another program had interrupted"},
    {"is_whole", "", "flag*", "all pairs were measured"},
    {"seconds", "", "number*", "that it took"}};

std::string method_of(const LatencySource& source) {
    const auto measured = source.latencies.measured(), all = source.latencies.pairs();
    auto pairs = measured == all ? counted(all, "pair")
                                 : fmt::format("{} of {} pairs", grouped(measured), grouped(all));
    if (source.matrix == nullptr) return pairs;
    const auto& how = source.matrix->how;
    return pairs + fmt::format(", each {} of {} round trips by {}; harmonic means; it took {:.{}f} s",
                               counted(how.samples, "sample"), how.round_trips,
                               how.means == experiments::Means::cas ? "compare-and-swap" : "load and store",
                               source.seconds, source.seconds < 1 ? 2 : 1);
}

using RowCpus = std::vector<std::vector<unsigned>>;

std::vector<unsigned> group_of(const topology::LatencyLevel& level, unsigned cpu) {
    const auto group =
        std::ranges::find_if(level.groups, [cpu](const CpuSet& members) { return members.contains(cpu); });
    return group == level.groups.end() ? std::vector<unsigned>{cpu} : group->to_vector();
}

std::optional<double> median_between(const topology::Latencies& latencies, const std::vector<unsigned>& one,
                                     const std::vector<unsigned>& other) {
    std::vector<double> values;
    for (const unsigned a : one)
        for (const unsigned b : other)
            if (const auto ns = a == b ? std::nullopt : latencies.ns(a, b)) values.push_back(*ns);
    return affinityd::measure::median(values);
}

/// Rows and columns are alike; a row stands for some CPUs and is named by the lowest. Pairs that were not
/// measured have what their groups have, the finest that have any.
Document::Grid grid_of(const topology::Latencies& latencies,
                       const std::vector<topology::LatencyLevel>& levels, const RowCpus& rows,
                       const std::string& note) {
    std::vector<std::vector<std::optional<double>>> ns;
    std::optional<double> least, most;
    for (const auto& row : rows) {
        auto& cells = ns.emplace_back();
        for (const auto& column : rows) {
            auto value = median_between(latencies, row, column);
            const bool is_itself = &row == &column && row.size() == 1;
            for (std::size_t level = 0; !value && !is_itself && level < levels.size(); ++level)
                value = median_between(latencies, group_of(levels[level], row.front()),
                                       group_of(levels[level], column.front()));
            cells.push_back(value);
            if (!value) continue;
            least = std::min(least.value_or(*value), *value);
            most = std::max(most.value_or(*value), *value);
        }
    }
    Document::Grid grid{.note = note, .rows = {}, .columns = {}, .shares = {}};
    if (!least) return grid;
    grid.note += fmt::format("dark is near: {:.0f} to {:.0f} ns", *least, *most);
    const double range = std::log(std::max(*most / *least, least_range));
    for (std::size_t row = 0; row < rows.size(); ++row) {
        grid.rows.push_back(std::to_string(std::ranges::min(rows[row])));
        auto& shares = grid.shares.emplace_back();
        auto& texts = grid.texts.emplace_back();
        for (const auto& value : ns[row]) {
            // By ratio: 1 for the nearest, little for the farthest.
            shares.push_back(
                value ? std::optional(std::clamp(1 - std::log(*value / *least) / range, least_shade, 1.0))
                      : std::nullopt);
            texts.push_back(value ? fmt::format("{:.0f}", *value) : "");
        }
    }
    grid.columns = grid.rows;
    return grid;
}

/// CPU by CPU, then group by group of each level. CPUs that are near each other stand side by side: coarse
/// groups first, finer ones within them, then numbers.
Document::Map map_of(const topology::Latencies& latencies,
                     const std::vector<topology::LatencyLevel>& levels) {
    auto cpus = latencies.cpus();
    for (const auto& level : levels)
        std::ranges::stable_sort(cpus, {}, [&level](unsigned cpu) { return group_of(level, cpu).front(); });
    Document::Map map{.title = "Each with each, ns", .corner = "CPU", .grids = {}};
    RowCpus each;
    for (const unsigned cpu : cpus)
        each.push_back({cpu});
    map.grids.push_back(grid_of(latencies, levels, each, ""));
    for (std::size_t i = 0; i < levels.size(); ++i) {
        RowCpus rows;
        for (const unsigned cpu : cpus)
            if (auto group = group_of(levels[i], cpu); rows.empty() || rows.back() != group)
                rows.push_back(std::move(group));
        map.grids.push_back(
            grid_of(latencies, levels, rows,
                    fmt::format("groups of level {}, each named by its lowest CPU, medians; ", i + 1)));
    }
    return map;
}

/// To a hundredth of a nanosecond, and from 100 on to a tenth: more is noise, and the history is not endless.
json short_ns(std::optional<double> ns) {
    if (!ns) return {};
    return *ns < 100 ? std::round(*ns * 100) / 100 : std::round(*ns * 10) / 10;
}

json triangle(const experiments::LatencyMatrix& matrix, const auto& figure) {
    std::map<unsigned, std::size_t> place;
    json rows = json::array();
    for (const unsigned cpu : matrix.latencies.cpus()) {
        place[cpu] = rows.size();
        rows.push_back(std::vector<json>(rows.size()));
    }
    for (const auto& figures : matrix.pairs)
        rows[place[figures.pair.b]][place[figures.pair.a]] = short_ns(std::invoke(figure, figures));
    return rows;
}

json latency_value(const LatencySource& source, const experiments::LatencyReading& reading) {
    CpuSet measured;
    for (const unsigned cpu : source.latencies.cpus())
        measured.insert(cpu);
    json levels = json::array(), names = json::array(), distances = json::array();
    for (const auto& level : reading.levels) {
        json groups = json::array(), of_level = json::array();
        for (const auto& group : level.groups) {
            groups.push_back(group.to_list());
            of_level.push_back(source.topology == nullptr
                                   ? json()
                                   : json(experiments::name_of_group(*source.topology, group, measured)));
        }
        levels.push_back(record(level_fields, {level.ns, std::move(groups)}));
        names.push_back(std::move(of_level));
    }
    for (const auto& one : reading.distances)
        distances.push_back(record(distance_fields, {one.name, one.pairs, one.median, one.least, one.most}));
    const auto* matrix = source.matrix;
    const auto if_measured = [&](auto value) {
        return matrix == nullptr ? json(json::value_t::discarded) : json(value());
    };
    const auto table = json::parse(topology::to_json(source.latencies));
    const auto of_table = [&](const char* key) {
        return table.contains(key) ? table[key] : json(json::value_t::discarded);
    };
    return record(latency_fields,
                  {of_table("cpus"),
                   of_table("ns"),
                   of_table("model"),
                   of_table("places"),
                   source.name,
                   record(pairs_count_fields, {source.latencies.measured(), source.latencies.pairs()}),
                   std::move(levels),
                   reading.level_names,
                   std::move(names),
                   std::move(distances),
                   reading.findings,
                   reading.meaning,
                   source.remarks,
                   if_measured([&] { return triangle(*matrix, &experiments::PairFigures::low); }),
                   if_measured([&] { return triangle(*matrix, &experiments::PairFigures::high); }),
                   if_measured([&] { return triangle(*matrix, &experiments::PairFigures::median); }),
                   if_measured([&] { return name_of(matrix->how.means); }),
                   if_measured([&] { return matrix->how.samples; }),
                   if_measured([&] { return matrix->how.round_trips; }),
                   if_measured([&] { return matrix->interrupted; }),
                   if_measured([&] { return matrix->is_whole; }),
                   if_measured([&] { return source.seconds; })});
}

void add_levels(Document& document, const LatencySource& source, const experiments::LatencyReading& reading) {
    if (reading.levels.empty()) {
        document.paragraph(
            !reading.is_uniform ? "No groups: some CPUs are much nearer to each other than others, but they "
                                  "form no groups with a clear step from one to the next."
            : reading.not_measured > 0
                ? "No groups were found: where it was measured, CPUs are about as near to each other."
                : "No groups: all CPUs are about as near to each other.");
        return;
    }
    Document::Table table{.fields = {}, .headings = {"LEVEL", "NS", "GROUPS", "THE TOPOLOGY SAYS", "CPUS"}};
    for (std::size_t i = 0; i < reading.levels.size(); ++i) {
        const auto& groups = reading.levels[i].groups;
        std::string lists;
        for (std::size_t group = 0; group < std::min(groups.size(), most_groups_told); ++group)
            lists += (group == 0 ? "" : "  ") + groups[group].to_list();
        if (groups.size() > most_groups_told)
            lists += fmt::format(" and {} more", groups.size() - most_groups_told);
        const auto& name = reading.level_names[i];
        table.rows.push_back({i + 1, ns_words(reading.levels[i].ns), grouped(groups.size()),
                              name.empty() && source.topology != nullptr ? "nothing of them" : name, lists});
    }
    document.add(std::move(table)).gap = true;
}

Document latency_document(const LatencySource& source, const experiments::LatencyReading& reading) {
    auto document = experiment_document(
        titled("Latency between " + counted(source.latencies.cpus().size(), "CPU") + ", ns for one way",
               source.name),
        method_of(source));
    document.value = latency_value(source, reading);
    if (source.matrix != nullptr && source.matrix->pairs.size() <= few_pairs) {
        Document::Table table{.fields = {}, .headings = {"CPUS", "NS", "95 % INTERVAL", "MEDIAN"}};
        for (const auto& one : source.matrix->pairs)
            table.rows.push_back(
                {fmt::format("{} and {}", one.pair.a, one.pair.b), ns_words(one.ns),
                 one.low ? ns_words(*one.low) + " to " + ns_words(*one.high) : "too few samples",
                 ns_words(one.median)});
        document.add(std::move(table)).gap = true;
    }
    if (source.latencies.measured() > 1) { // one pair has no scale
        Document::Table table{.fields = {}, .headings = {"DISTANCE", "PAIRS", "MEDIAN NS", "LEAST", "MOST"}};
        for (const auto& one : reading.distances)
            table.rows.push_back(
                {one.name, one.pairs, ns_words(one.median), ns_words(one.least), ns_words(one.most)});
        document.add(std::move(table)).gap = true;
        add_levels(document, source, reading);
        document.add(map_of(source.latencies, reading.levels)).gap = true;
    }
    add_conclusions(document, reading.findings, source.remarks, reading.meaning);
    return document;
}

/// As the history keeps it: of a machine so large that all is too long, without intervals and medians, by
/// which nothing is placed.
std::string latency_detail(json value) {
    auto text = dump(value);
    if (text.size() <= affinityd::accounting::most_experiment_detail) return text;
    for (const char* key : {"low", "high", "median"})
        value.erase(key);
    return dump(value);
}

Outcome show_table(const Globals& globals, const MeasureLatencyOptions& options) {
    const auto latencies = read_latency_table(options.from);
    if (!latencies) return failed(latencies.error());
    std::optional<topology::Topology> machine; // of a recorded machine that the table is of
    if (globals.is_recorded()) {
        const auto root = affinityd::host::Root::open(globals.root);
        if (!root) return failed(root.error());
        auto read = topology::read_topology(*root);
        if (!read) return failed(read.error());
        machine = std::move(*read);
    }
    const LatencySource source{
        .latencies = *latencies,
        .topology = machine ? &*machine : nullptr,
        .name = options.from == "-" ? "standard input" : options.from.substr(options.from.rfind('/') + 1)};
    auto document = latency_document(source, experiments::read_latencies(*latencies, source.topology));
    document.picture = options.common.svg;
    return document;
}

std::vector<std::string> remarks_on_pairs(const Bench& bench, const experiments::LatencyMatrix& matrix,
                                          std::size_t cpus, bool is_kept) {
    std::vector<std::string> remarks;
    if (matrix.interrupted > 0)
        remarks.push_back(counted(matrix.interrupted, "sample") +
                          " taken again, because another program had been run in between.");
    if (!matrix.disturbed.empty())
        remarks.push_back(counted(matrix.disturbed.size(), "pair") +
                          " could not be measured: other programs ran there all the time.");
    if (is_kept && cpus < bench.usable.count())
        remarks.push_back(fmt::format("Policies that say 'measured' go by the result that was kept last. "
                                      "This one has {} of {} CPUs: measure all of "
                                      "them again, or keep such a one out with --no-history.",
                                      cpus, bench.usable.count()));
    return remarks;
}

Outcome measure_latencies(const Globals& globals, MeasureLatencyOptions options) {
    options.how.means = options.means == "cas" ? experiments::Means::cas : experiments::Means::store;
    const auto bench = read_bench(globals, options.common);
    const auto pairs =
        experiments::choose_pairs(bench.topology, bench.chosen, pair_choices.at(options.pairs));
    if (!pairs) return failed(exit_failure, refusal_of(pairs.error(), bench.chosen));
    CpuSet cpus;
    for (const auto& pair : *pairs)
        cpus |= {pair.a, pair.b};
    if (cpus.count() > topology::Latencies::most_cpus)
        return failed(exit_failure,
                      fmt::format("a table holds {} CPUs, and these are {}: choose some with --cpus",
                                  grouped(topology::Latencies::most_cpus), grouped(cpus.count())));
    auto [matrix, on] = run_experiment_for<experiments::LatencyMatrix>(
        bench,
        {.doing = "measuring latency between " + counted(pairs->size(), "pair") + " of CPUs",
         .seconds = experiments::estimated_seconds(pairs->size(), options.how),
         .cpus = cpus},
        options.common, [&](experiments::Run& run) {
            return experiments::measure_pairs(
                cpus, describe(bench.topology, cpus, topology::read_cpu_model(bench.root)), *pairs,
                options.how, run);
        });
    if (matrix.pairs.empty())
        return failed(exit_failure,
                      "other programs ran on these CPUs all the time, and nothing could be measured: try it "
                      "with --priority, or when the machine is "
                      "quiet");
    const auto reading = experiments::read_latencies(matrix.latencies, &bench.topology);
    for (auto& remark : remarks_on_pairs(bench, matrix, cpus.count(), !options.common.no_history))
        on.remarks.push_back(std::move(remark));
    const LatencySource source{.latencies = matrix.latencies,
                               .matrix = &matrix,
                               .topology = &bench.topology,
                               .name = matrix.latencies.machine().model,
                               .seconds = on.seconds,
                               .remarks = on.remarks};
    auto document = latency_document(source, reading);
    auto detail = latency_detail(document.value);
    return finish_experiment(options.common, std::move(document),
                             {.kind = "latency",
                              .summary = reading.summary,
                              .subject = "CPUs " + on.cpus,
                              .seconds = on.seconds,
                              .detail = std::move(detail)});
}

Outcome run_latency(const Globals& globals, const MeasureLatencyOptions& options) {
    if (options.from.empty()) return measure_latencies(globals, options);
    const auto picture = check_picture(globals, options.common.svg);
    return picture ? show_table(globals, options) : std::unexpected(picture.error());
}

} // namespace

void add_measure_latency(CLI::App& parent, Globals& globals, int& status) {
    const auto options = std::make_shared<MeasureLatencyOptions>();
    auto* verb =
        add_verb(parent,
                 {.name = "latency",
                  .summary = "how long a message takes between each two CPUs, and which are near each other",
                  .example = "affinityctl measure latency --cpus 0-7 --svg latency.svg",
                  .answer = latency_fields,
                  .manual = "affinityctl-measure(1)"},
                 globals, status, [&globals, options] { return run_latency(globals, *options); });
    verb->add_option("--pairs", options->pairs,
                     "all; one CPU of each core, or of each LLC group; auto: all up to 64 CPUs, else some of "
                     "each two groups")
        ->capture_default_str()
        ->check(CLI::IsMember({"auto", "core", "llc", "all"}));
    verb->add_option("--means", options->means,
                     "how the line is passed on: compare-and-swap, or load and store")
        ->capture_default_str()
        ->check(CLI::IsMember({"cas", "store"}));
    verb->add_option("--samples", options->how.samples, "samples of each pair; below 4 there is no interval")
        ->capture_default_str()
        ->check(in_range(1U, 10000U));
    verb->add_option("--round-trips", options->how.round_trips, "round trips in a sample")
        ->capture_default_str()
        ->check(in_range(10U, 1000000U));
    add_experiment_options(*verb, options->common);
    auto* from = verb->add_option("--from", options->from,
                                  "show this table (CSV as of core-to-core-latency, or what --json printed; "
                                  "- is standard input) and measure nothing; "
                                  "with --root DIR it is of that recorded machine")
                     ->type_name("FILE")
                     ->check(not_empty());
    for (const char* of_a_run :
         {"--cpus", "--pairs", "--means", "--samples", "--round-trips", "--priority", "--no-history"})
        from->excludes(verb->get_option(of_a_run));
}

} // namespace affinityctl
