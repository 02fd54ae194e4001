// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/lab/experiment.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/text.hpp"
#include "experiments/cache.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <memory>

#include <fmt/format.h>

namespace affinityctl {

namespace experiments = affinityd::experiments;
namespace measure = affinityd::measure;
using affinityd::counted;
using experiments::Place;
using nlohmann::json;

namespace {

struct MeasureCacheOptions {
    ExperimentOptions common;
    std::vector<std::uint64_t> sizes_kib, caches_kib;
    experiments::CacheHow how;
};

std::string quantum_cell(const json& row) {
    return fmt::format("{:g} ms", row.at("quantum_ms").get<double>());
}
std::string size_cell(const json& row) { return experiments::bytes_words(row.at("at_bytes")); }
std::string shown_cell(const json& row) { return cell(row.at("shown")) + " of " + cell(row.at("of")); }

const Field cell_fields[] = {
    {"bytes", "", "count", "the working set"},
    {"quantum_ms", "", "number", "how often it was interrupted"},
    {"place", "", "text", "kept, displaced, emptied, group, other_llc or other_node"},
    {"ms", "", "interval?", "mean CPU time of the next quantum's work"},
    {"longer_than_kept", "", "change?", "null: kept itself, or too few rounds"}};
const Field loss_fields[] = {
    {"quantum_ms", "QUANTUM", "number", "how often it was interrupted", {}, quantum_cell},
    {"place", "WAS ON", "text", "where it was, or which caches were lost", {}, name_cell},
    {"mean", "ON AVERAGE", "change?", "over the working sets that fit the lost cache"},
    {"most", "MOST", "change?", "of the working set that loses most"},
    {"at_bytes", "AT", "count", "that working set", {}, size_cell},
    {"shown", "SHOWN FOR", "count", "working sets that are shown to lose by themselves", {}, shown_cell},
    {"of", "", "count", "working sets that fit"},
};
const Field cache_fields[] = {{"model", "", "text", "of the CPUs"},
                              {"cpus", "", "cpus", "that it ran on"},
                              {"places", "", "count{}", "the CPU of each place"},
                              {"l1d_bytes", "", "count", "L1 data cache"},
                              {"own_bytes", "", "count", "largest cache of a core alone"},
                              {"llc_bytes", "", "count", "last-level cache"},
                              {"polluter_bytes", "", "count", "read to empty the last level"},
                              {"rounds", "", "count", "quanta of each case"},
                              {"cells", "", "object[]", "working set by quantum by place", cell_fields},
                              {"losses", "", "object[]", "averages over working sets", loss_fields},
                              {"verdict", "", "text", "bind: core, bind: llc, bind: node or not known"},
                              {"refused", "", "text[]", "why places are not measured"},
                              {"disturbed", "", "count", "quanta in which another program had the CPU"},
                              {"findings", "", "text[]", "sentences"},
                              {"meaning", "", "text", "what to write into a policy"},
                              {"remarks", "", "text[]", "on how far the figures can be trusted"},
                              {"seconds", "", "number", "that it took"}};

std::string heading_of(Place place) {
    auto heading = (place == Place::kept ? "MS, " : "") + std::string(name_of(place));
    std::ranges::transform(heading, heading.begin(), [](unsigned char c) { return std::toupper(c); });
    return heading;
}

/// A quantum: a row for each working set, a column for each place; and its curves over the size of the
/// working set, one for each place.
void add_quantum(Document& document, const experiments::CacheResult& result, double quantum) {
    Document::Table table{.fields = {}, .headings = {"WORKING SET"}, .folded = true};
    const auto title = fmt::format("Interrupted every {:g} ms: how much longer", quantum);
    Document::Chart chart{.title = title + ", by working set",
                          .unit = "%",
                          .kind = Document::Chart::Kind::lines,
                          .series = {},
                          .x_text = [](double x) {
                              return experiments::bytes_words(static_cast<std::uint64_t>(std::exp2(x) + 0.5));
                          }};
    std::uint64_t last = 0;
    for (const auto& one : result.cases) {
        if (one.quantum_ms != quantum) continue;
        if (one.footprint != last) table.rows.push_back({experiments::bytes_words(one.footprint)});
        last = one.footprint;
        const auto name = std::string(name_of(one.place));
        if (table.rows.size() == 1) table.headings.push_back(heading_of(one.place));
        table.rows.back().push_back(one.place == Place::kept ? interval_json(one.mean, ms)
                                                             : change_json(one.longer));
        if (one.longer.verdict == measure::Verdict::not_enough) continue;
        auto series = std::ranges::find(chart.series, name, &Document::Series::name);
        if (series == chart.series.end()) series = chart.series.insert(chart.series.end(), {name, {}});
        series->points.push_back(point_of(name, one.longer.change, 0.01));
        series->points.back().x = std::log2(static_cast<double>(one.footprint));
    }
    document.add(Document::Line{{{title + " the next quantum takes"}}}, Document::Where::text).gap = true;
    document.add(std::move(table), Document::Where::text);
    if (!chart.series.empty()) document.add(std::move(chart), Document::Where::picture).gap = true;
}

Document cache_document(const experiments::CacheResult& result, const experiments::CacheSeats& seats,
                        const MeasuredOn& on) {
    using experiments::bytes_words;
    auto document =
        experiment_document(titled("The cost of a lost cache", on.model),
                            fmt::format("L1d {}, core's own {}, last level {}; polluter {}; CPU {}; {}; CPU "
                                        "time of the quantum after an interruption against one that "
                                        "left the cache alone; it took {:.0f} s",
                                        bytes_words(seats.sizes.first), bytes_words(seats.sizes.own),
                                        bytes_words(seats.sizes.last), bytes_words(result.how.polluter_bytes),
                                        seats.home, counted(result.how.rounds, "round"), on.seconds));
    for (const double quantum : result.how.quanta_ms)
        add_quantum(document, result, quantum);
    json cells = json::array(), losses = json::array(), places = json::object();
    for (const auto& one : result.cases)
        cells.push_back(record(cell_fields, {one.footprint, one.quantum_ms, key_of(one.place),
                                             interval_json(one.mean, ms), change_json(one.longer)}));
    Document::Table table{.fields = loss_fields, .folded = true, .keys = 2};
    for (const auto& loss : result.losses) {
        losses.push_back(record(loss_fields, {loss.quantum_ms, key_of(loss.place), change_json(loss.mean),
                                              change_json(loss.most), loss.at, loss.costly, loss.of}));
        if (loss.of == 0) continue;
        table.rows.push_back(losses.back());
        table.rows.back()["name"] = name_of(loss.place);
    }
    for (const Place place : experiments::places)
        if (const auto cpu = seats.of(place)) places[std::string(key_of(place))] = *cpu;
    if (!table.rows.empty()) document.add(std::move(table)).gap = true;
    auto remarks = seats.refused;
    if (result.disturbed > 0)
        remarks.push_back(counted(result.disturbed, "quantum", "quanta") + " had another program on the CPU");
    remarks.insert(remarks.end(), on.remarks.begin(), on.remarks.end());
    add_conclusions(document, {}, remarks, {});
    document.line("Verdict: " + result.verdict).gap = remarks.empty();
    document.line(result.meaning);
    document.value =
        record(cache_fields, {on.model, on.cpus, std::move(places), seats.sizes.first, seats.sizes.own,
                              seats.sizes.last, result.how.polluter_bytes, result.how.rounds,
                              std::move(cells), std::move(losses), result.verdict, seats.refused,
                              result.disturbed, result.findings, result.meaning, on.remarks, on.seconds});
    return document;
}

/// The working sets of the command line, else those that fit the machine's caches.
experiments::CacheHow how_to_measure(const MeasureCacheOptions& options,
                                     const experiments::CacheSeats& seats) {
    auto how = options.how;
    for (const auto kib : options.sizes_kib)
        how.footprints.push_back(kib << 10U);
    if (how.footprints.empty()) how.footprints = experiments::footprints_for(seats.sizes);
    std::ranges::sort(how.quanta_ms);
    std::ranges::sort(how.footprints);
    how.quanta_ms.erase(std::ranges::unique(how.quanta_ms).begin(), how.quanta_ms.end());
    how.footprints.erase(std::ranges::unique(how.footprints).begin(), how.footprints.end());
    return how;
}

/// The CPUs to measure on, and the caches: those of the command line, of the kernel, or of the C library.
std::expected<experiments::CacheSeats, experiments::Refusal> seats_for(const MeasureCacheOptions& options,
                                                                       const Bench& bench) {
    experiments::CacheSizes named;
    if (const auto& kib = options.caches_kib; kib.size() == 3)
        named = {kib[0] << 10U, kib[1] << 10U, kib[2] << 10U};
    const bool is_named = named.first != 0;
    auto seats = experiments::cache_seats(bench.topology, bench.chosen,
                                          is_named ? named : experiments::sizes_of_c_library());
    if (seats && is_named) seats->sizes = named;
    return seats;
}

/// On what is not known from the kernel.
void add_remarks_on_caches(const MeasureCacheOptions& options, const experiments::CacheSeats& seats,
                           std::vector<std::string>& remarks) {
    if (!options.caches_kib.empty())
        remarks.emplace_back("the sizes of the caches are those of --caches");
    else if (!seats.are_sizes_recorded)
        remarks.push_back(experiments::remark_of_c_library(seats.sizes));
    if (!seats.are_sizes_recorded)
        remarks.emplace_back("the kernel does not say which CPUs share a cache: which have the same last "
                             "level is a guess by die, package and node");
}

/// A fault if the sizes of --caches cannot be.
std::expected<void, CallError> check_caches(const std::vector<std::uint64_t>& kib) {
    constexpr std::uint64_t largest_first = 1024, largest_own = 262'144; // several times what there is
    if (!std::ranges::is_sorted(kib))
        return failed(exit_usage,
                      "--caches names the L1 data cache, the core's own and the last level, which ascend");
    if (!kib.empty() && (kib[0] > largest_first || kib[1] > largest_own))
        return failed(
            exit_usage,
            fmt::format(
                "--caches: no core has {} and {} KiB of its own; getconf(1) says bytes, of which this "
                "wants the 1024th part",
                kib[0], kib[1]));
    return {};
}

Outcome measure_cache(const Globals& globals, const MeasureCacheOptions& options) {
    if (const auto checked = check_caches(options.caches_kib); !checked)
        return std::unexpected(checked.error());
    const auto bench = read_bench(globals, options.common);
    const auto seats = seats_for(options, bench);
    if (!seats) return failed(exit_failure, refusal_of(seats.error(), bench.chosen));
    const auto polluter = experiments::polluter_for(seats->sizes, experiments::available_memory(bench.root));
    auto how = how_to_measure(options, *seats);
    how.polluter_bytes = polluter.bytes;
    const auto no_room = take_out_too_large(how.footprints, polluter);
    if (how.footprints.empty()) return failed(exit_failure, no_room + ": name smaller ones with --sizes");
    affinityd::CpuSet used;
    for (const auto place : experiments::places)
        if (const auto cpu = seats->of(place)) used.insert(*cpu);
    auto [result, on] = run_experiment_for<experiments::CacheResult>(
        bench,
        {.doing = "measuring what it costs to lose the cache",
         .seconds = experiments::estimated_seconds(*seats, how),
         .cpus = used,
         .left_out = seats->refused},
        options.common, [&](experiments::Run& run) { return experiments::measure_cache(*seats, how, run); });
    experiments::read_cache(result, *seats, on.remarks.empty());
    add_remarks_on_caches(options, *seats, on.remarks);
    for (const auto& remark : {remark_of(polluter), no_room})
        if (!remark.empty()) on.remarks.push_back(remark);
    return finish_experiment(options.common, cache_document(result, *seats, on),
                             {.kind = "cache",
                              .summary = result.summary,
                              .subject = "CPUs " + on.cpus,
                              .seconds = on.seconds,
                              .detail = {}});
}

} // namespace

void add_measure_cache(CLI::App& parent, Globals& globals, int& status) {
    const auto options = std::make_shared<MeasureCacheOptions>();
    auto* verb = add_verb(parent,
                          {.name = "cache",
                           .summary = "the cost to a task of a lost cache, and how wide its mask may be",
                           .example = "affinityctl measure cache --quanta 2ms,10ms",
                           .answer = cache_fields,
                           .manual = "affinityctl-measure(1)"},
                          globals, status, [&globals, options] { return measure_cache(globals, *options); });
    verb->add_option("--quanta", options->how.quanta_ms,
                     "how often it is interrupted, with commas between (2ms,10ms; numbers are ms)")
        ->delimiter(',')
        ->type_name("TIME")
        ->default_str("2,10,200")
        ->transform(time_from(std::chrono::microseconds(100), Seconds(10), std::chrono::milliseconds(1)));
    verb->add_option(
            "--sizes", options->sizes_kib,
            "working sets in KiB, with commas between; default: from half the L1 to twice the last level")
        ->delimiter(',')
        ->check(in_range(std::uint64_t{1}, experiments::most_footprint >> 10U));
    verb->add_option("--caches", options->caches_kib,
                     "the L1 data cache, the core's own and the last level in KiB, with commas between; "
                     "default: what the kernel says, else the C "
                     "library")
        ->delimiter(',')
        ->expected(3)
        ->check(in_range(std::uint64_t{1}, std::uint64_t{1} << 30U));
    verb->add_option("--rounds", options->how.rounds, "quanta of each case; below 4 there is no verdict")
        ->capture_default_str()
        ->check(in_range(1U, 1000U));
    add_experiment_options(*verb, options->common);
}

} // namespace affinityctl
