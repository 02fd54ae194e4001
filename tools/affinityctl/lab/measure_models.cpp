// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/report.hpp"
#include "affinity-ttcp/models/round.hpp"
#include "affinityctl/lab/experiment.hpp"
#include "affinityctl/present/output.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/text.hpp"
#include "experiments/nearness.hpp"
#include "measure/report_json.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using namespace affinityd;
using namespace affinityd::ttcp;
using nlohmann::json;

const std::string one_byte = "1"; ///< each way

/// A size of a curve, with its models in the order of the report.
struct PointView {
    const PointResult& result;
    std::vector<ModelSummary> models;
    [[nodiscard]] const LoadPoint& point() const { return result.point; }
};
/// The curve of one kind of work: all sizes of it, in the order of the report.
struct WorkView {
    Work work;
    std::vector<PointView> points;
    [[nodiscard]] bool is_curve() const { return points.size() > 1; }
    /// Each model has it at each point where it was measured.
    [[nodiscard]] bool has(Figure figure) const {
        return std::ranges::all_of(points, [figure](const PointView& point) {
            return std::ranges::all_of(point.models, [figure](const ModelSummary& model) {
                return model.rounds == 0 || model[figure].mean.has_value();
            });
        });
    }
};

std::string words_of(Work work) {
    return work == Work::answer ? "answer requests" : std::string(to_string(work));
}

std::vector<WorkView> work_views(const ModelsReport& report) {
    std::vector<WorkView> views;
    for (const auto& each : report.points) {
        auto at = std::ranges::find(views, each.point.work, &WorkView::work);
        if (at == views.end()) at = views.insert(views.end(), WorkView{each.point.work, {}});
        at->points.push_back({each, summarize(each.models)});
    }
    return views;
}

std::vector<std::string> labels_of(const ModelsReport& report) {
    std::vector<std::string> labels;
    std::map<affinityd::Model, unsigned> seen;
    if (report.points.empty()) return labels;
    for (const auto& result : report.points.front().models) {
        const unsigned number = ++seen[result.model];
        labels.push_back(number == 1 ? std::string(to_string(result.model))
                                     : fmt::format("{} ({})", to_string(result.model), number));
    }
    return labels;
}

std::string title_of(const WorkView& view) {
    std::string what(to_string(view.work));
    what.front() = static_cast<char>(what.front() - 'a' + 'A');
    if (view.is_curve()) return what + ", by size";
    const auto size = size_text(view.points.front().point());
    return view.work == Work::answer ? fmt::format("{}, {} requests", what, size)
                                     : fmt::format("{}, {} at a time", what, size);
}

std::string headline_of(const ModelsReport& report, const std::vector<WorkView>& views) {
    std::string works;
    std::size_t sizes = 0, rounds = 0;
    for (const auto& view : views) {
        works += (works.empty() ? "" : &view == &views.back() ? " and " : ", ") + words_of(view.work);
        sizes = std::max(sizes, view.points.size());
        for (const auto& point : view.points)
            for (const auto& model : point.models)
                rounds = std::max<std::size_t>(rounds, model.rounds);
    }
    return fmt::format("{}, {}, {}{} of {:g} s for each model on CPUs {}",
                       counted(report.connections, "connection"), works,
                       sizes > 1 ? fmt::format("{} sizes, ", sizes) : "", counted(rounds, "round"),
                       report.round_seconds, report.cpus.to_list());
}

/// In multiples of `unit`; the mean alone where there are too few rounds for an interval.
std::string value_words(const Measured& figure, double unit) {
    if (figure.interval) return cell(interval_json(figure.interval, unit));
    return figure.mean ? figure_words(*figure.mean / unit) : "-";
}

/// Against the first model, which is not compared with itself.
std::string model_change(const measure::Comparison& change, bool is_first) {
    if (is_first) return "-";
    std::string text(to_string(change.verdict));
    const int digits = change.change.high - change.change.low < 0.05 ? 1 : 0;
    if (change.verdict == measure::Verdict::none_shown)
        return text + fmt::format(" ({} to {} %)", measure::signed_percent(change.change.low, digits),
                                  measure::signed_percent(change.change.high, digits));
    return change.verdict == measure::Verdict::not_enough ? text : cell(change_json(change));
}

std::string summary_of(const std::vector<WorkView>& views, const std::vector<std::string>& labels) {
    std::string text;
    for (const auto& view : views) {
        const auto& last = view.points.back();
        const bool answers = view.work == Work::answer;
        text +=
            fmt::format("{}{}, {}:", text.empty() ? "" : "; ", to_string(view.work), size_text(last.point()));
        for (std::size_t i = 0; i < last.models.size(); ++i) {
            const auto& rate =
                last.models[i][answers ? Figure::exchanges_per_second : Figure::bits_per_second];
            text += fmt::format("{} {} {} {}", i == 0 ? "" : ",", labels[i],
                                value_words(rate, answers ? 1 : 1e9), answers ? "requests/s" : "Gbit/s");
            if (i > 0) text += ": " + model_change(last.models[i][Figure::bits_per_second].change, false);
        }
    }
    return text;
}

std::string notes_of(const ModelsReport& report, const std::vector<WorkView>& views,
                     const std::vector<std::string>& labels) {
    auto text = fmt::format(
        "Harmonic means of rates, means of costs and counts, with 95 % intervals (Student's t). Changes are "
        "against "
        "{}, and their intervals hold all together for each size. Cost by {}; {}. Interrupts are those of "
        "devices; "
        "they, IPIs and NET_RX softirqs are of the whole machine, the rest is of the processes under test.",
        labels.empty() ? "the first" : labels.front(), report.cycles_source, report.parts_note);
    if (std::ranges::none_of(views, [](const WorkView& view) { return view.has(Figure::cache_misses); }))
        text += " Cache misses: no hardware counters here.";
    return text;
}

std::string ending_of(const ModelsReport& report) {
    return fmt::format("not finished: {}: {}{}", measure::to_string(report.outcome), report.reason,
                       has_rounds(report) ? "" : ", before the first round was measured; nothing is kept");
}

/// The model that is shown to do more than the first, or as much at less cost; 0: none is.
std::size_t best_of(const PointView& point) {
    std::size_t best = 0;
    double most = -1;
    for (std::size_t i = 1; i < point.models.size(); ++i) {
        const auto& model = point.models[i];
        const auto& gain = model[Figure::bits_per_second].change;
        const bool is_better = gain.verdict == measure::Verdict::more ||
                               (gain.verdict == measure::Verdict::none_shown &&
                                model[model.cost()].change.verdict == measure::Verdict::less);
        if (!is_better || gain.change.estimate <= most) continue;
        best = i;
        most = gain.change.estimate;
    }
    return best;
}

/// A sentence for each kind of work, of its largest size.
std::vector<std::string> findings_of(const std::vector<WorkView>& views,
                                     const std::vector<std::string>& labels) {
    std::vector<std::string> findings;
    for (const auto& view : views) {
        const auto& last = view.points.back();
        const auto name = fmt::format("{}, {}", to_string(view.work), size_text(last.point()));
        const auto best = best_of(last);
        const auto& model = last.models[best];
        if (model[Figure::bits_per_second].change.verdict == measure::Verdict::not_enough && best > 0)
            continue;
        findings.push_back(best == 0
                               ? fmt::format("{}: no model was shown to be better than {}", name, labels[0])
                               : fmt::format("{}: write affinity: {}; throughput {}, cost {}, against {}",
                                             name, to_string(model.model),
                                             model_change(model[Figure::bits_per_second].change, false),
                                             model_change(model[model.cost()].change, false), labels[0]));
    }
    return findings;
}

/// A column of figures, in multiples of `unit`.
struct FigureColumn {
    const char* heading;
    Figure figure;
    double unit = 1;
    enum Shows { interval, mean, change } shows = interval; ///< change: against the first model
};

Document::Table table_of(const WorkView& view, const std::vector<std::string>& labels,
                         const std::vector<FigureColumn>& columns) {
    Document::Table table{.fields = {}, .folded = true, .keys = view.is_curve() ? 2U : 1U};
    if (view.is_curve()) table.headings.emplace_back("SIZE");
    table.headings.emplace_back("MODEL");
    for (const auto& column : columns)
        table.headings.emplace_back(column.heading);
    for (const auto& point : view.points)
        for (std::size_t i = 0; i < point.models.size(); ++i) {
            std::vector<std::string> row;
            if (view.is_curve()) row.push_back(size_text(point.point()));
            row.push_back(labels[i]);
            for (const auto& column : columns) {
                const auto& figure = point.models[i][column.figure];
                row.push_back(
                    column.shows == FigureColumn::change ? model_change(figure.change, i == 0)
                    : column.shows == FigureColumn::mean
                        ? cell(figure.mean ? json(figure_words(*figure.mean / column.unit)) : json())
                        : value_words(figure, column.unit));
            }
            table.rows.push_back(std::move(row));
        }
    return table;
}

/// Bars where the work has one size, else a line for each model over the sizes. The `main` chart shows a
/// single size as text, too.
void add_chart(Document& document, const WorkView& view, const std::vector<std::string>& labels,
               const FigureColumn& shown, const char* title, bool is_main) {
    const bool is_curve = view.is_curve();
    Document::Chart chart{.title = title,
                          .unit = shown.heading,
                          .kind = is_curve ? Document::Chart::Kind::lines : Document::Chart::Kind::bars,
                          .series = {}};
    chart.x_text = [](double x) { return size_text(static_cast<std::size_t>(std::exp2(x) + 0.5)); };
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (is_curve || i == 0) chart.series.push_back({is_curve ? labels[i] : "", {}});
        for (const auto& point : view.points) {
            auto drawn = point_of(labels[i], point.models[i][shown.figure].interval, shown.unit);
            drawn.x = std::log2(static_cast<double>(point.point().bytes));
            chart.series.back().points.push_back(std::move(drawn));
        }
    }
    document.add(std::move(chart), is_main && !is_curve ? Document::Where::both : Document::Where::picture)
        .gap = true;
}

void add_work(Document& document, const WorkView& view, const std::vector<std::string>& labels) {
    const bool answers = view.work == Work::answer, cycles = !answers && view.has(Figure::cycles);
    const double cost_unit = cycles ? 1 : answers ? 1e-6 : 1e-3;
    const auto cost = cycles ? Figure::cycles : Figure::cpu;
    const auto part = [cost](int number) { return static_cast<Figure>(static_cast<int>(cost) + number); };
    const Figure change_of_cost = view.has(Figure::cycles) ? Figure::cycles : Figure::cpu;
    document.heading(title_of(view)).gap = true;
    if (answers) {
        document.add(table_of(view, labels,
                              {{"REQUESTS/S", Figure::exchanges_per_second},
                               {"GAIN", Figure::bits_per_second, 1, FigureColumn::change},
                               {"P50 US", Figure::p50, 1e-6},
                               {"CHANGE", Figure::p50, 1, FigureColumn::change},
                               {"P99 US", Figure::p99, 1e-6},
                               {"CHANGE", Figure::p99, 1, FigureColumn::change},
                               {"CPU US/REQUEST", cost, cost_unit},
                               {"COST", change_of_cost, 1, FigureColumn::change}}));
        add_chart(document, view, labels, {"us", Figure::p50, 1e-6}, "Median latency", true);
        add_chart(document, view, labels, {"us", Figure::p99, 1e-6}, "Latency of 99 of 100 requests", true);
    } else {
        document.add(table_of(view, labels,
                              {{"GBIT/S", Figure::bits_per_second, 1e9},
                               {"GAIN", Figure::bits_per_second, 1, FigureColumn::change},
                               {cycles ? "GHZ/GBPS" : "CPU MS/GBIT", cost, cost_unit},
                               {"COST", change_of_cost, 1, FigureColumn::change},
                               {"BUSY CPUS", Figure::busy_cpus, 1, FigureColumn::mean}}));
        add_chart(document, view, labels, {"Gbit/s", Figure::bits_per_second, 1e9}, "Throughput", true);
    }
    add_chart(document, view, labels,
              {cycles    ? "GHz/Gbps"
               : answers ? "us"
                         : "ms",
               cost, cost_unit},
              cycles    ? "Cost"
              : answers ? "CPU time of a request"
                        : "CPU time of a gigabit",
              false);
    document
        .line(std::string(cycles    ? "GHz/Gbps"
                          : answers ? "CPU time of a request, us,"
                                    : "CPU time of a gigabit, ms,") +
              " in its parts:")
        .gap = true;
    std::vector<FigureColumn> parts{{"PROCESSES", part(1), cost_unit},
                                    {"SOFTIRQ", part(2), cost_unit},
                                    {"INTERRUPTS", part(3), cost_unit}};
    if (view.has(Figure::cache_misses)) {
        parts.push_back({"MISSES/BIT", Figure::cache_misses});
        parts.push_back({"CHANGE", Figure::cache_misses, 1, FigureColumn::change});
    }
    document.add(table_of(view, labels, parts));
    document.add(Document::Line{{{"Meanwhile:"}}}, Document::Where::text).gap = true;
    document.add(table_of(view, labels,
                          {{"SWITCHES/S", Figure::switches},
                           {"MIGRATIONS/S", Figure::migrations},
                           {"RETRANSMITS/S", Figure::retransmits},
                           {"INTERRUPTS/S", Figure::interrupts},
                           {"IPIS/S", Figure::ipis},
                           {"NET_RX/S", Figure::net_rx}}),
                 Document::Where::text);
}

const Field part_fields[] = {{"total", "", "interval?", "of all parts"},
                             {"processes", "", "interval?", "outside of interrupts"},
                             {"softirq", "", "interval?", "soft interrupts"},
                             {"interrupts", "", "interval?", "hard interrupts"}};
const Field per_second_fields[] = {{"context_switches", "", "interval?", "of the processes under test"},
                                   {"migrations", "", "interval?", "of them"},
                                   {"retransmits", "", "interval?", "of them"},
                                   {"interrupts", "", "interval?", "of the machine's devices"},
                                   {"ipis", "", "interval?", "between its CPUs"},
                                   {"net_rx_softirqs", "", "interval?", "of the machine"},
                                   {"net_tx_softirqs", "", "interval?", "of the machine"}};
const Field cache_miss_fields[] = {{"per_bit", "", "interval?", "misses"},
                                   {"change", "", "change?", "against the first model"}};
const Field exchange_fields[] = {{"per_second", "", "interval?", "requests"},
                                 {"p50_seconds", "", "interval?", "median latency"},
                                 {"p50_change", "", "change?", "against the first model"},
                                 {"p99_seconds", "", "interval?", "latency of 99 of 100"},
                                 {"p99_change", "", "change?", "against the first model"}};
const Field sample_fields[] = {{"bits_per_second", "", "number", "throughput"},
                               {"bytes", "", "count", "that arrived"},
                               {"seconds", "", "number", "length of the round"},
                               {"cpu_seconds", "", "number", "of the system under test"},
                               {"processes_cpu_seconds", "", "number", "part of it"},
                               {"softirq_cpu_seconds", "", "number", "part of it"},
                               {"interrupts_cpu_seconds", "", "number?", "part of it"},
                               {"ghz_per_gbps", "", "number?", "cycles of a bit"},
                               {"context_switches", "", "count", "of the processes under test"},
                               {"migrations", "", "count?", "of them"},
                               {"retransmits", "", "count?", "of them"},
                               {"interrupts", "", "count", "of the machine's devices"},
                               {"ipis", "", "count?", "between its CPUs"},
                               {"exchanges", "", "count*", "requests"},
                               {"p50_seconds", "", "number*", "median latency"},
                               {"p99_seconds", "", "number*", "latency of 99 of 100"}};
const Field model_json_fields[] = {
    {"model", "", "text", "none, irq, process or full"},
    {"rounds", "", "count", "that were measured"},
    {"bits_per_second", "", "interval?", "throughput"},
    {"gain", "", "change?", "in throughput, or in requests, against the first model"},
    {"ghz_per_gbps", "", "interval?", "cycles of a bit"},
    {"cost", "", "change?", "of a bit or a request, against the first model"},
    {"busy_cpus", "", "number?", "CPUs' worth of work"},
    {"instructions_per_bit", "", "number?", "mean"},
    {"cache_misses_per_bit", "", "number?", "mean"},
    {"context_switches_per_second", "", "number?", "mean"},
    {"migrations_per_second", "", "number?", "mean"},
    {"retransmits_per_second", "", "number?", "mean"},
    {"cpus", "", "any[]", "activity of each CPU"},
    {"lines", "", "any[]", "interrupts of the NICs"},
    {"samples", "", "object[]", "each round", sample_fields},
    {"ghz_per_gbps_parts", "", "object", "by context", part_fields},
    {"cpu_seconds_per_exchange", "", "object*", "CPU time of a request", part_fields},
    {"cpu_seconds_per_gbit", "", "object*", "CPU time of a gigabit", part_fields},
    {"per_second", "", "object", "rates", per_second_fields},
    {"cache_misses", "", "object", "last level", cache_miss_fields},
    {"exchanges", "", "object?", "null for streams", exchange_fields}};
const Field point_fields[] = {{"direction", "", "text", "receive, transmit or answer"},
                              {"bytes", "", "count", "of a read, write or request"},
                              {"response_bytes", "", "count?", "null but for requests"},
                              {"models", "", "object[]", "each model", model_json_fields}};
/// The fields of ttcp::to_json; direction to models are those of the largest size.
const Field models_json_fields[] = {
    {"version", "", "count", "of this form: 1"},
    {"kind", "", "text", "models"},
    {"outcome", "", "text", "done, or why not"},
    {"reason", "", "text", "of an outcome that is not done"},
    {"setup", "", "text", "a sentence"},
    {"connections", "", "count", "each over an interface of its own"},
    {"round_seconds", "", "number", "length of a round"},
    {"seconds", "", "number", "that it took"},
    {"cycles_source", "", "text", "how cycles are counted"},
    {"parts_note", "", "text", "how far the parts can be trusted"},
    {"cpus", "", "cpus", "of the system under test"},
    {"direction", "", "text*", "as of a point"},
    {"bytes", "", "count*", "as of a point"},
    {"response_bytes", "", "count?*", "as of a point"},
    {"models", "", "object[]", "as of a point", model_json_fields},
    {"points", "", "object[]", "each size and kind of work", point_fields},
    {"findings", "", "text[]", "for each kind of work the line to write into a policy"},
    {"remarks", "", "text[]", "on how far the figures can be trusted"}};

json sample_json(const ModelSample& sample) {
    const auto& exchanges = sample.exchanges;
    const auto of_exchanges = [&](auto member) {
        return exchanges ? json((*exchanges).*member) : json(json::value_t::discarded);
    };
    return record(
        sample_fields,
        {sample.bits_per_second, sample.bytes, sample.wall_seconds, sample.cpu_seconds.total(),
         sample.cpu_seconds.processes, sample.cpu_seconds.softirq, or_null(sample.cpu_seconds.interrupts),
         sample.cycles_per_bit ? json(sample.cycles_per_bit->total()) : json(), sample.processes.switches,
         or_null(sample.processes.migrations), or_null(sample.processes.retransmits),
         sample.kernel.interrupts, or_null(sample.kernel.ipis), of_exchanges(&ExchangeSample::count),
         of_exchanges(&ExchangeSample::p50_seconds), of_exchanges(&ExchangeSample::p99_seconds)});
}

json model_json(const ModelSummary& model, const ModelResult& result) {
    const auto mean = [&](Figure figure) { return or_null(model[figure].mean); };
    const auto interval = [&](Figure figure) { return interval_json(model[figure].interval); };
    const auto change = [&](Figure figure) { return change_json(model[figure].change); };
    json samples = json::array();
    for (const auto& sample : result.samples)
        samples.push_back(sample_json(sample));
    const bool answers = model[Figure::p50].mean.has_value();
    auto cpu = record(part_fields, {interval(Figure::cpu), interval(Figure::cpu_processes),
                                    interval(Figure::cpu_softirq), interval(Figure::cpu_interrupts)});
    const json none(json::value_t::discarded);
    return record(
        model_json_fields,
        {to_string(model.model),
         model.rounds,
         interval(Figure::bits_per_second),
         change(Figure::bits_per_second),
         interval(Figure::cycles),
         change(model.cost()),
         mean(Figure::busy_cpus),
         mean(Figure::instructions),
         mean(Figure::cache_misses),
         mean(Figure::switches),
         mean(Figure::migrations),
         mean(Figure::retransmits),
         measure::to_json(model.cpus),
         measure::to_json(model.lines),
         std::move(samples),
         record(part_fields, {interval(Figure::cycles), interval(Figure::cycles_processes),
                              interval(Figure::cycles_softirq), interval(Figure::cycles_interrupts)}),
         answers ? cpu : none,
         answers ? none : cpu,
         record(per_second_fields,
                {interval(Figure::switches), interval(Figure::migrations), interval(Figure::retransmits),
                 interval(Figure::interrupts), interval(Figure::ipis), interval(Figure::net_rx),
                 interval(Figure::net_tx)}),
         record(cache_miss_fields, {interval(Figure::cache_misses), change(Figure::cache_misses)}),
         answers ? record(exchange_fields, {interval(Figure::exchanges_per_second), interval(Figure::p50),
                                            change(Figure::p50), interval(Figure::p99), change(Figure::p99)})
                 : json()});
}

json models_json(const ModelsReport& report, const std::vector<WorkView>& views,
                 const std::vector<std::string>& findings, const std::vector<std::string>& remarks) {
    json points = json::array(), main(json::value_t::discarded);
    for (const auto& view : views)
        for (const auto& each : view.points) {
            const auto& point = each.point();
            json models = json::array();
            for (std::size_t i = 0; i < each.models.size(); ++i)
                models.push_back(model_json(each.models[i], each.result.models[i]));
            points.push_back(
                record(point_fields, {to_string(point.work), point.bytes,
                                      point.work == Work::answer ? json(point.response_bytes) : json(),
                                      std::move(models)}));
            if (&each.result == main_point(report)) main = points.back();
        }
    const auto of_main = [&](const char* key) { return main.is_object() ? main[key] : main; };
    return record(models_json_fields,
                  {1, "models", to_string(report.outcome), report.reason, report.setup, report.connections,
                   report.round_seconds, report.seconds, report.cycles_source, report.parts_note,
                   report.cpus.to_list(), of_main("direction"), of_main("bytes"), of_main("response_bytes"),
                   main.is_object() ? main["models"] : json::array(), std::move(points), findings, remarks});
}

Document models_document(const ModelsReport& report, const std::vector<WorkView>& views,
                         const std::vector<std::string>& labels, const std::vector<std::string>& remarks) {
    Document document;
    document.title = "The affinity models side by side";
    document.indent = -1;
    document.by_columns = true;
    document.value = models_json(report, views, findings_of(views, labels), remarks);
    if (!has_rounds(report)) {
        document.line(ending_of(report) + ".");
        return document;
    }
    document.line(fmt::format("{}, in {:.0f} s", headline_of(report, views), report.seconds));
    document.line(report.setup);
    for (const auto& view : views)
        add_work(document, view, labels);
    document.paragraph(notes_of(report, views, labels));
    add_conclusions(document, findings_of(views, labels), remarks, {});
    if (report.outcome != measure::Outcome::done) document.paragraph(ending_of(report));
    return document;
}

Document finish_models(const ExperimentOptions& options, const ModelsReport& report,
                       const std::vector<std::string>& remarks) {
    const auto views = work_views(report);
    const auto labels = labels_of(report);
    auto document = models_document(report, views, labels, remarks);
    if (report.outcome == measure::Outcome::done)
        return finish_experiment(options, std::move(document),
                                 {.kind = "models",
                                  .summary = summary_of(views, labels),
                                  .subject = "CPUs " + report.cpus.to_list(),
                                  .seconds = report.seconds,
                                  .detail = {}});
    document.picture = options.svg;
    document.complaints.push_back("affinityctl: " + report.reason + "; nothing is kept");
    document.code = exit_failure;
    return document;
}

struct MeasureModelsOptions {
    unsigned connections = 8;
    std::string models = "none,irq,process,full";
    std::string direction = "receive";
    std::optional<std::size_t> length; ///< none: that of a LoadPoint
    std::string sizes, exchanges;      ///< "": not asked for
    ExperimentOptions common;
    std::string nics;
    std::vector<NicPair> pairs;
    ModelsSetup setup;
};

Result<void> read_pairs(const std::string& text, std::vector<NicPair>& pairs) {
    if (text.empty()) return {};
    for (const auto& pair : CLI::detail::split(text, ',')) {
        const auto names = CLI::detail::split(pair, ':');
        if (names.size() != 2 || names[0].empty() || names[1].empty())
            return fail("expected pairs of NICs as in eth1:eth2,eth3:eth4", text);
        pairs.emplace_back(names[0], names[1]);
    }
    return {};
}

Result<void> read_models(const std::string& text, std::vector<Model>& models) {
    models.clear();
    for (const auto& name : CLI::detail::split(text, ',')) {
        const auto model = parse_model(name);
        if (!model) return fail("no such model; there are none, irq, process and full", name);
        models.push_back(*model);
    }
    if (models.size() < 2 || models.size() > 8) return fail("expected 2 to 8 models to compare", text);
    return {};
}

/// The points to measure: streams in one or both directions at each size, then requests.
Result<void> read_points(const MeasureModelsOptions& options, std::vector<LoadPoint>& points) {
    points.clear();
    if (options.direction == to_string(Work::answer) && (options.length || !options.sizes.empty()))
        return fail("is of streams, and --direction answer has none; see --rr",
                    options.length ? "--length" : "--sizes");
    std::vector<std::size_t> sizes{options.length.value_or(LoadPoint{}.bytes)};
    if (!options.sizes.empty()) {
        auto read = parse_sizes(options.sizes);
        if (!read) return std::unexpected(read.error());
        sizes = std::move(*read);
    }
    for (const auto work : {Work::receive, Work::transmit})
        if (options.direction == to_string(work) || options.direction == "both")
            for (const auto size : sizes)
                points.push_back({work, size, 0});
    if (options.exchanges.empty() && options.direction != to_string(Work::answer)) return {};
    auto exchanges = parse_exchanges(options.exchanges.empty() ? one_byte : options.exchanges);
    if (!exchanges) return std::unexpected(exchanges.error());
    points.insert(points.end(), exchanges->begin(), exchanges->end());
    return {};
}

Result<void> complete(MeasureModelsOptions& options) {
    auto done = read_pairs(options.nics, options.pairs);
    if (done) done = read_models(options.models, options.setup.models);
    return done ? read_points(options, options.setup.points) : done;
}

Outcome run(const Globals& globals, MeasureModelsOptions options) {
    if (const auto done = complete(options); !done) return failed(exit_usage, done.error().to_string());
    const auto bench = read_bench(globals, options.common);
    if (bench.chosen.empty())
        return failed(exit_failure, refusal_of(experiments::Refusal::one_cpu, bench.chosen));
    auto& setup = options.setup;
    setup.round.cpus = bench.chosen;
    auto [report, on] = run_experiment_for<ModelsReport>(
        bench,
        {.doing =
             fmt::format("measuring {} of {:g} s", counted(rounds_of(setup), "round"), setup.round.seconds),
         .seconds = expected_seconds(setup),
         .cpus = bench.chosen,
         .shows_part = true},
        options.common, [&](experiments::Run& run) -> Result<ModelsReport> {
            setup.round.stop = run.stop_file();
            setup.progress = [&run](std::size_t done, std::size_t all) { run.advance(done, all); };
            const auto testbed = options.pairs.empty() ? make_veth_testbed(bench.root, options.connections)
                                                       : make_nic_testbed(bench.root, options.pairs);
            if (!testbed) return std::unexpected(testbed.error());
            return run_models(bench.root, *testbed, setup);
        });
    return finish_models(options.common, report, on.remarks);
}

void add_testbed_options(CLI::App& verb, MeasureModelsOptions& options) {
    verb.add_option("--connections", options.connections, "connections, each over its own interface")
        ->capture_default_str()
        ->check(in_range(1U, most_connections));
    verb.add_option("--nics", options.nics, "joined pairs of unused NICs instead: eth1:eth2,eth3:eth4")
        ->check(not_empty())
        ->excludes("--connections");
}

void add_round_options(CLI::App& verb, MeasureModelsOptions& options) {
    verb.add_option("--rounds", options.setup.rounds, "rounds of each; below 4 no verdict")
        ->capture_default_str()
        ->check(in_range(1, 1000));
    verb.add_option("--seconds", options.setup.round.seconds, "length of a round")
        ->type_name("TIME")
        ->capture_default_str()
        ->transform(time_from(Seconds(0.1), Seconds(60)));
    verb.add_option("--models", options.models, "in this order, compared with the first")
        ->capture_default_str();
    verb.add_option("--sockbuf", options.setup.round.socket_buffer, "socket buffers, bytes; 0: the kernel's")
        ->capture_default_str()
        ->check(in_range(0, 1 << 30));
    add_experiment_options(verb, options.common);
}

void add_load_options(CLI::App& verb, MeasureModelsOptions& options) {
    verb.add_option("--direction", options.direction, "the work of the system under test")
        ->capture_default_str()
        ->check(CLI::IsMember({"receive", "transmit", "both", "answer"}));
    auto* length = verb.add_option("--length", options.length, "bytes of one read or write")
                       ->default_str(std::to_string(LoadPoint{}.bytes))
                       ->check(in_range(std::size_t{1}, most_bytes));
    verb.add_option("--sizes", options.sizes, fmt::format("a curve over sizes; all: {}", paper_sizes))
        ->expected(0, 1)
        ->default_str("all")
        ->excludes(length);
    verb.add_option("--rr", options.exchanges, "also requests and responses of so many bytes")
        ->expected(0, 1)
        ->default_str(one_byte);
}

} // namespace

void add_measure_models(CLI::App& parent, Globals& globals, int& status) {
    const auto options = std::make_shared<MeasureModelsOptions>();
    auto* verb =
        add_verb(parent,
                 {.name = "models",
                  .summary = "the four affinity models side by side, on veth pairs or NICs; needs root",
                  .example = "affinityctl measure models --sizes --rr --svg models.svg",
                  .answer = models_json_fields,
                  .manual = "affinityctl-measure(1)"},
                 globals, status, [&globals, options] { return run(globals, *options); });
    add_testbed_options(*verb, *options);
    add_load_options(*verb, *options);
    add_round_options(*verb, *options);
}

} // namespace affinityctl
