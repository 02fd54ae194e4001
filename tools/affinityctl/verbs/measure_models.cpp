// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/report.hpp"
#include "affinity-ttcp/models/run.hpp"
#include "affinityctl/present/output.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/experiment.hpp"
#include "affinityctl/verbs/option_values.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/clock.hpp"
#include "base/text.hpp"
#include "experiments/frame.hpp"
#include "host/scheduler.hpp"
#include "host/signals.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace affinityctl {

namespace {

using namespace affinityd;
using namespace affinityd::ttcp;
using measure::Comparison;
using measure::Interval;
using nlohmann::json;

const std::string one_byte = "1"; ///< each way
constexpr const char* wipe = "\r\033[K";

/// One size of a curve, with its models in the order of the report.
struct PointView {
    LoadPoint point;
    std::vector<ModelSummary> models;
};
/// The curve of one kind of work: all sizes of it, in the order of the report.
struct WorkView {
    Work work;
    std::vector<PointView> points;
};
/// It has several sizes.
bool is_curve(const WorkView& view) { return view.points.size() > 1; }

/// "1.23 (1.20 to 1.26)" in multiples of `unit`; "-" where there is none.
std::string interval_text(const std::optional<measure::Interval>& interval, double unit, int digits) {
    if (!interval) return "-";
    return fmt::format("{:.{}f} ({:.{}f} to {:.{}f})", interval->estimate / unit, digits,
                       interval->low / unit, digits, interval->high / unit, digits);
}

/// Above this part of all CPU time, what others did is worth a sentence.
constexpr double quiet_part = 0.1;

std::string words_of(Work work) {
    return work == Work::answer ? "answer requests" : std::string(to_string(work));
}

bool has_counters(const std::vector<WorkView>& views) {
    return std::ranges::any_of(views, [](const WorkView& view) {
        return std::ranges::any_of(view.points, [](const PointView& point) {
            return std::ranges::any_of(point.models, [](const ModelSummary& model) {
                return model.per_bit.cache_misses.mean.has_value();
            });
        });
    });
}

bool has_cycles(const WorkView& view) {
    return std::ranges::all_of(view.points, [](const PointView& point) {
        return std::ranges::all_of(point.models, [](const ModelSummary& model) {
            return model.rounds == 0 || model.cost.cycles_per_bit.total.has_value();
        });
    });
}

std::vector<WorkView> work_views(const ModelsReport& report) {
    std::vector<WorkView> views;
    for (const auto& each : report.points) {
        auto at = std::ranges::find(views, each.point.work, &WorkView::work);
        if (at == views.end()) at = views.insert(views.end(), WorkView{each.point.work, {}});
        at->points.push_back({each.point, summarize(each.models)});
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
    if (is_curve(view)) return what + ", by size";
    const auto size = size_text(view.points.front().point);
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

std::string summary_of(const ModelsReport& report, const std::vector<WorkView>& views) {
    const auto labels = labels_of(report);
    std::string text;
    for (const auto& view : views) {
        const auto& last = view.points.back();
        text +=
            fmt::format("{}{}, {}:", text.empty() ? "" : "; ", to_string(view.work), size_text(last.point));
        for (std::size_t i = 0; i < last.models.size(); ++i) {
            const auto& model = last.models[i];
            const auto rate = model.exchanges
                                  ? interval_text(model.exchanges->per_second, 1, 0) + " requests/s"
                                  : interval_text(model.bits_per_second, 1e9, 2) + " Gbit/s";
            text += fmt::format("{} {} {}", i == 0 ? "" : ",", labels[i], rate);
            if (i > 0) text += ": " + describe(model.gain);
        }
    }
    return text;
}

std::string notes_of(const ModelsReport& report, const std::vector<WorkView>& views) {
    const auto labels = labels_of(report);
    auto text = fmt::format(
        "Harmonic means of rates, means of costs and counts, with 95 % intervals (Student's t). Changes are "
        "against "
        "{}, and their intervals hold all together for each size. Cost by {}; {}. Interrupts are those of "
        "devices; "
        "they, IPIs and NET_RX softirqs are of the whole machine, the rest is of the processes under test.",
        labels.empty() ? "the first" : labels.front(), report.cycles_source, report.parts_note);
    if (!has_counters(views)) text += " Cache misses: no hardware counters here.";
    if (report.busy_before.value_or(0) > quiet_part)
        text += fmt::format(" Other programs used {:.0f} % of the CPU time before it began: what seems a "
                            "difference may be theirs, and small ones are hidden.",
                            100 * *report.busy_before);
    return text;
}

std::string ending_of(const ModelsReport& report) {
    return fmt::format("not finished: {}: {}{}", measure::to_string(report.outcome), report.reason,
                       has_rounds(report) ? "" : ", before the first round was measured; nothing is kept");
}

// The rows of all tables: models at a size. --json prints affinity-ttcp's report, so these are columns alone.

constexpr Field column(const char* key, const char* heading) { return {key, heading, "text", ""}; }

const Field model_stream_fields[] = {column("size", "SIZE"),        column("model", "MODEL"),
                                     column("rate", "GBIT/S"),      column("gain", "GAIN"),
                                     column("cost", "CPU MS/GBIT"), column("change", "COST"),
                                     column("busy", "BUSY CPUS")};
const Field model_cycle_fields[] = {
    column("size", "SIZE"),     column("model", "MODEL"), column("rate", "GBIT/S"),   column("gain", "GAIN"),
    column("cost", "GHZ/GBPS"), column("change", "COST"), column("busy", "BUSY CPUS")};
const Field model_answer_fields[] = {column("size", "SIZE"),           column("model", "MODEL"),
                                     column("rate", "REQUESTS/S"),     column("gain", "GAIN"),
                                     column("p50", "P50 US"),          column("p50_change", "CHANGE"),
                                     column("p99", "P99 US"),          column("p99_change", "CHANGE"),
                                     column("cost", "CPU US/REQUEST"), column("change", "COST")};
/// The last two only where misses are counted.
const Field model_part_fields[] = {
    column("size", "SIZE"),           column("model", "MODEL"),           column("processes", "PROCESSES"),
    column("softirq", "SOFTIRQ"),     column("interrupts", "INTERRUPTS"), column("misses", "MISSES/BIT"),
    column("misses_change", "CHANGE")};
const Field model_rate_fields[] = {column("size", "SIZE"),
                                   column("model", "MODEL"),
                                   column("switches", "SWITCHES/S"),
                                   column("migrations", "MIGRATIONS/S"),
                                   column("retransmits", "RETRANSMITS/S"),
                                   column("interrupts", "INTERRUPTS/S"),
                                   column("ipis", "IPIS/S"),
                                   column("net_rx", "NET_RX/S")};
const Field model_cpu_fields[] = {
    column("model", "MODEL"),          column("cpu", "CPU"),   column("user", "USER S"),
    column("system", "SYSTEM S"),      column("irq", "IRQ S"), column("softirq", "SOFTIRQ S"),
    column("interrupts", "INTERRUPTS")};
const Field model_line_fields[] = {column("model", "MODEL"),
                                   column("irq", "IRQ"),
                                   column("queue", "QUEUE"),
                                   {"counts", "INTERRUPTS ON EACH CPU", "prose", ""}};

std::string change_text(const Comparison& change, bool is_first) { return is_first ? "-" : describe(change); }

std::string rate_cell(const Rate& rate) {
    if (rate.interval) return interval_text(rate.interval, 1, 0);
    return rate.mean ? fmt::format("{:.0f}", *rate.mean) : "-";
}

/// `cells(model, is_first)` gives the values behind the size and the model.
template <class Cells>
Document::Table table_of(const WorkView& view, const std::vector<std::string>& labels, Fields fields,
                         Cells cells) {
    const bool has_sizes = is_curve(view);
    Document::Table table{
        .fields = fields.subspan(has_sizes ? 0 : 1), .folded = true, .keys = has_sizes ? 2U : 1U};
    for (const auto& point : view.points)
        for (std::size_t i = 0; i < point.models.size(); ++i) {
            json row{{"size", size_text(point.point)}, {"model", labels[i]}};
            row.update(cells(point.models[i], i == 0));
            table.rows.push_back(std::move(row));
        }
    return table;
}

/// The work that was done, against the first model, and its cost.
Document::Table gain_table(const WorkView& view, const std::vector<std::string>& labels) {
    if (view.work == Work::answer)
        return table_of(view, labels, model_answer_fields,
                        [](const ModelSummary& model, bool is_first) -> json {
                            const auto& exchanges = model.exchanges;
                            if (!exchanges) return json::object();
                            return {{"rate", interval_text(exchanges->per_second, 1, 0)},
                                    {"gain", change_text(model.gain, is_first)},
                                    {"p50", interval_text(exchanges->p50, 1e-6, 1)},
                                    {"p50_change", change_text(exchanges->p50_change, is_first)},
                                    {"p99", interval_text(exchanges->p99, 1e-6, 1)},
                                    {"p99_change", change_text(exchanges->p99_change, is_first)},
                                    {"cost", interval_text(model.cost.cpu_seconds.total, 1e-6, 2)},
                                    {"change", change_text(model.cost.change, is_first)}};
                        });
    const bool cycles = has_cycles(view);
    return table_of(view, labels, cycles ? Fields(model_cycle_fields) : Fields(model_stream_fields),
                    [&](const ModelSummary& model, bool is_first) -> json {
                        return {{"rate", interval_text(model.bits_per_second, 1e9, 2)},
                                {"gain", change_text(model.gain, is_first)},
                                {"cost", cycles ? interval_text(model.cost.cycles_per_bit.total, 1, 2)
                                                : interval_text(model.cost.cpu_seconds.total, 1e-3, 1)},
                                {"change", change_text(model.cost.change, is_first)},
                                {"busy", model.busy_cpus ? fmt::format("{:.2f}", *model.busy_cpus) : "-"}};
                    });
}

/// The cost in its parts.
Document::Table parts_table(const WorkView& view, const std::vector<std::string>& labels) {
    const bool answers = view.work == Work::answer, cycles = !answers && has_cycles(view);
    const auto fields =
        Fields(model_part_fields)
            .first(has_counters({view}) ? std::size(model_part_fields) : std::size(model_part_fields) - 2);
    return table_of(view, labels, fields, [&](const ModelSummary& model, bool is_first) -> json {
        const auto& cost = cycles ? model.cost.cycles_per_bit : model.cost.cpu_seconds;
        const auto text = [&](const std::optional<Interval>& part) {
            return cycles    ? interval_text(part, 1, 2)
                   : answers ? interval_text(part, 1e-6, 2)
                             : interval_text(part, 1e-3, 1);
        };
        return {{"processes", text(cost.processes)},
                {"softirq", text(cost.softirq)},
                {"interrupts", text(cost.interrupts)},
                {"misses", interval_text(model.per_bit.cache_misses.interval, 1, 5)},
                {"misses_change", change_text(model.per_bit.misses_change, is_first)}};
    });
}

Document::Table rate_table(const WorkView& view, const std::vector<std::string>& labels) {
    return table_of(view, labels, model_rate_fields, [](const ModelSummary& model, bool) -> json {
        const auto& rates = model.per_second;
        return {{"switches", rate_cell(rates.switches)},
                {"migrations", rate_cell(rates.migrations)},
                {"retransmits", rate_cell(rates.retransmits)},
                {"interrupts", rate_cell(rates.interrupts)},
                {"ipis", rate_cell(rates.ipis)},
                {"net_rx", rate_cell(rates.net_rx)}};
    });
}

const Field estimate_fields[] = {{"estimate", "", "number", "mean or change"},
                                 {"low", "", "number", "low end of the 95 % interval"},
                                 {"high", "", "number", "high end of it"}};
const Field compared_fields[] = {
    {"verdict", "", "text", "more, less, no difference shown, or too few rounds"},
    {"change", "", "object*", "relative to the first model", estimate_fields}};
const Field part_fields[] = {{"total", "", "object?", "of all parts", estimate_fields},
                             {"processes", "", "object?", "outside of interrupts", estimate_fields},
                             {"softirq", "", "object?", "soft interrupts", estimate_fields},
                             {"interrupts", "", "object?", "hard interrupts", estimate_fields}};
const Field per_second_fields[] = {{"context_switches", "", "object?", "per second", estimate_fields},
                                   {"migrations", "", "object?", "per second", estimate_fields},
                                   {"retransmits", "", "object?", "per second", estimate_fields},
                                   {"interrupts", "", "object?", "per second", estimate_fields},
                                   {"ipis", "", "object?", "per second", estimate_fields},
                                   {"net_rx_softirqs", "", "object?", "per second", estimate_fields},
                                   {"net_tx_softirqs", "", "object?", "per second", estimate_fields}};
const Field cache_miss_fields[] = {{"per_bit", "", "object?", "misses", estimate_fields},
                                   {"change", "", "object", "of it", compared_fields}};
const Field exchange_fields[] = {{"per_second", "", "object?", "requests", estimate_fields},
                                 {"p50_seconds", "", "object?", "median latency", estimate_fields},
                                 {"p50_change", "", "object", "of it", compared_fields},
                                 {"p99_seconds", "", "object?", "latency of 99 of 100", estimate_fields},
                                 {"p99_change", "", "object", "of it", compared_fields}};
const Field model_json_fields[] = {
    {"model", "", "text", "none, irq, process or full"},
    {"rounds", "", "count", "that were measured"},
    {"bits_per_second", "", "object?", "throughput", estimate_fields},
    {"gain", "", "object", "in throughput, or in requests", compared_fields},
    {"ghz_per_gbps", "", "object?", "cycles of a bit", estimate_fields},
    {"cost", "", "object", "its change", compared_fields},
    {"busy_cpus", "", "number?", "CPUs' worth of work"},
    {"instructions_per_bit", "", "number?", "mean"},
    {"cache_misses_per_bit", "", "number?", "mean"},
    {"context_switches_per_second", "", "number?", "mean"},
    {"migrations_per_second", "", "number?", "mean"},
    {"retransmits_per_second", "", "number?", "mean"},
    {"cpus", "", "any[]", "activity of each CPU"},
    {"lines", "", "any[]", "interrupts of the NICs"},
    {"samples", "", "any[]", "each round"},
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
    {"busy_before", "", "number?", "part of all CPU time that other programs used before, 0 to 1"},
    {"cpus", "", "cpus", "of the system under test"},
    {"direction", "", "text*", "as of a point"},
    {"bytes", "", "count*", "as of a point"},
    {"response_bytes", "", "count?*", "as of a point"},
    {"models", "", "object[]", "as of a point", model_json_fields},
    {"points", "", "object[]", "each size and kind of work", point_fields}};

/// Bars where the work has one size, else a line for each model over the sizes.
template <class Get>
void add_chart(Document& document, const WorkView& view, const std::vector<std::string>& labels,
               std::string title, std::string unit, double scale, Get get,
               Document::Where where = Document::Where::picture) {
    Document::Chart chart{.title = std::move(title),
                          .unit = std::move(unit),
                          .kind = Document::Chart::Kind::lines,
                          .series = {}};
    if (!is_curve(view))
        chart = {
            .title = chart.title, .unit = chart.unit, .kind = Document::Chart::Kind::bars, .series = {{}}};
    chart.x_text = [](double x) { return size_text(static_cast<std::size_t>(std::exp2(x) + 0.5)); };
    for (std::size_t i = 0; i < labels.size(); ++i) {
        if (is_curve(view)) chart.series.push_back({labels[i], {}});
        for (const auto& point : view.points) {
            const std::optional<Interval> value = get(point.models[i]);
            Document::Point drawn{
                .x = std::log2(static_cast<double>(point.point.bytes)), .failed = !value, .label = labels[i]};
            if (value) {
                drawn.y = value->estimate * scale;
                drawn.low = value->low * scale;
                drawn.high = value->high * scale;
            }
            chart.series.back().points.push_back(std::move(drawn));
        }
    }
    document.add(std::move(chart), where).gap = true;
}

void add_work(Document& document, const WorkView& view, const std::vector<std::string>& labels) {
    const bool answers = view.work == Work::answer, cycles = !answers && has_cycles(view);
    document.heading(title_of(view)).gap = true;
    document.add(gain_table(view, labels));
    const auto in_text = is_curve(view) ? Document::Where::picture : Document::Where::both;
    if (answers) {
        add_chart(
            document, view, labels, "Median latency", "us", 1e6,
            [](const ModelSummary& m) { return m.exchanges ? m.exchanges->p50 : std::nullopt; }, in_text);
        add_chart(
            document, view, labels, "Latency of 99 of 100 requests", "us", 1e6,
            [](const ModelSummary& m) { return m.exchanges ? m.exchanges->p99 : std::nullopt; }, in_text);
        add_chart(document, view, labels, "CPU time of a request", "us", 1e6,
                  [](const ModelSummary& m) { return m.cost.cpu_seconds.total; });
    } else {
        add_chart(
            document, view, labels, "Throughput", "Gbit/s", 1e-9,
            [](const ModelSummary& m) { return m.bits_per_second; }, in_text);
        if (cycles)
            add_chart(document, view, labels, "Cost", "GHz/Gbps", 1,
                      [](const ModelSummary& m) { return m.cost.cycles_per_bit.total; });
        else
            add_chart(document, view, labels, "CPU time of a gigabit", "ms", 1e3,
                      [](const ModelSummary& m) { return m.cost.cpu_seconds.total; });
    }
    const char* cost = answers  ? "CPU time of a request, us,"
                       : cycles ? "GHz/Gbps"
                                : "CPU time of a gigabit, ms,";
    document.line(std::string(cost) + " in its parts:").gap = true;
    document.add(parts_table(view, labels));
    document.add(Document::Line{{{"Meanwhile:"}}}, Document::Where::text).gap = true;
    document.add(rate_table(view, labels), Document::Where::text);
}

/// Activity of each CPU, and of the NICs' interrupts, at the point that stands for the report.
void add_machine(Document& document, const ModelsReport& report, const std::vector<WorkView>& views,
                 const std::vector<std::string>& labels) {
    const auto* main = main_point(report);
    Document::Table cpus{.fields = model_cpu_fields, .folded = true, .keys = 2},
        lines{.fields = model_line_fields, .keys = 2};
    std::string where;
    for (const auto& view : views)
        for (const auto& point : view.points) {
            if (main == nullptr || point.point != main->point) continue;
            where = fmt::format("{}, {}", to_string(view.work), size_text(point.point));
            for (std::size_t i = 0; i < point.models.size(); ++i) {
                for (const auto& cpu : point.models[i].cpus)
                    cpus.rows.push_back(record(
                        model_cpu_fields,
                        {labels[i], std::to_string(cpu.cpu), fmt::format("{:.2f}", cpu.user_seconds),
                         fmt::format("{:.2f}", cpu.system_seconds), fmt::format("{:.2f}", cpu.irq_seconds),
                         fmt::format("{:.2f}", cpu.softirq_seconds), std::to_string(cpu.interrupts)}));
                std::map<unsigned, std::pair<std::string, std::string>> by_irq; // label, counts
                for (const auto& line : point.models[i].lines) {
                    auto& [label, counts] = by_irq[line.irq];
                    label = line.label;
                    counts += fmt::format("{}{} on CPU {}", counts.empty() ? "" : ", ", line.count, line.cpu);
                }
                for (const auto& [irq, texts] : by_irq)
                    lines.rows.push_back(record(model_line_fields,
                                                {labels[i], std::to_string(irq), texts.first, texts.second}));
            }
        }
    if (cpus.rows.empty()) return;
    document
        .add(Document::Line{{{fmt::format("All that ran on each CPU meanwhile, over all rounds ({}):",
                                          where)}}},
             Document::Where::text)
        .gap = true;
    document.add(std::move(cpus), Document::Where::text);
    if (lines.rows.empty()) return;
    document.add(Document::Line{{{"Interrupts of the NICs:"}}}, Document::Where::text).gap = true;
    document.add(std::move(lines), Document::Where::text);
}

Document models_document(const ModelsReport& report, const std::vector<WorkView>& views) {
    Document document;
    document.title = "The affinity models side by side";
    document.indent = -1;
    document.by_columns = true;
    document.value = json::parse(ttcp::to_json(report));
    if (!has_rounds(report)) {
        document.line(ending_of(report) + ".");
        return document;
    }
    const auto labels = labels_of(report);
    document.line(fmt::format("{}, in {:.0f} s", headline_of(report, views), report.seconds));
    document.line(report.setup);
    for (const auto& view : views)
        add_work(document, view, labels);
    document.paragraph(notes_of(report, views));
    add_machine(document, report, views, labels);
    if (report.outcome != measure::Outcome::done) document.paragraph(ending_of(report));
    return document;
}

Document finish_models(const ExperimentOptions& options, const ModelsReport& report) {
    const auto views = work_views(report);
    auto document = models_document(report, views);
    if (report.outcome == measure::Outcome::done)
        return finish_experiment(options, std::move(document),
                                 {.kind = "models",
                                  .summary = summary_of(report, views),
                                  .subject = "CPUs " + report.cpus.to_list(),
                                  .seconds = report.seconds,
                                  .detail = ttcp::to_json(report)});
    document.picture = options.svg;
    document.complaints.push_back("affinityctl: " + report.reason + "; nothing is kept");
    document.code = exit_failure;
    return document;
}

struct MeasureModelsOptions {
    unsigned connections = 8;
    std::string models = "none,irq,process,full";
    std::string cpus;
    std::string direction = "receive";
    std::optional<std::size_t> length; ///< none: that of a LoadPoint
    std::string sizes, exchanges;      ///< "": not asked for
    ExperimentOptions common;
    std::string nics;
    std::vector<NicPair> pairs;
    ModelsSetup setup;
};

/// While it lives, signals that end programs make a descriptor readable, so that the experiment ends in good
/// order. Afterwards they end the program, which may wait for who reads its results.
class CaughtSignals {
  public:
    CaughtSignals() {
        ::sigprocmask(SIG_BLOCK, &set_, &before_);
        file_.reset(::signalfd(-1, &set_, SFD_CLOEXEC));
    }
    CaughtSignals(const CaughtSignals&) = delete;
    CaughtSignals& operator=(const CaughtSignals&) = delete;
    ~CaughtSignals() {
        const timespec at_once{};
        while (::sigtimedwait(&set_, nullptr, &at_once) > 0) { // the experiment has ended for these
        }
        ::sigprocmask(SIG_SETMASK, &before_, nullptr);
    }
    [[nodiscard]] const host::Fd& file() const { return file_; }

  private:
    sigset_t set_ = host::stop_signals();
    sigset_t before_{};
    host::Fd file_;
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

Result<void> read_cpus(const MeasureModelsOptions& options, CpuSet& cpus) {
    const auto allowed = host::get_affinity(0);
    if (!allowed) return fail("cannot read this program's CPUs", {}, allowed.error());
    cpus = *allowed;
    if (options.cpus.empty()) return {};
    const auto asked = CpuSet::parse_list(options.cpus);
    if (!asked) return std::unexpected(asked.error());
    if (asked->empty() || !allowed->contains(*asked))
        return fail("not all of these CPUs can be used; there are " + allowed->to_list(), options.cpus);
    cpus = *asked;
    return {};
}

Result<void> complete(MeasureModelsOptions& options) {
    auto& setup = options.setup;
    if (auto done = read_pairs(options.nics, options.pairs); !done) return done;
    if (auto done = read_models(options.models, setup.models); !done) return done;
    if (auto done = read_points(options, setup.points); !done) return done;
    return read_cpus(options, setup.round.cpus);
}

/// Says beforehand how long it takes, and on a terminal, how far it is.
void announce(ModelsSetup& setup) {
    const double expected = expected_seconds(setup);
    fmt::print(stderr, "{} of {:g} s: about {}; Ctrl-C ends it with what there is by then\n",
               counted(rounds_of(setup), "round"), setup.round.seconds, experiments::time_words(expected));
    if (::isatty(STDERR_FILENO) != 1) return;
    fmt::print(stderr, "warming up");
    setup.progress = [began = monotonic_seconds()](std::size_t done, std::size_t all) mutable {
        if (done == 0) { // the first measured round begins
            began = monotonic_seconds();
            return;
        }
        constexpr std::size_t width = 30;
        const auto filled = done * width / all;
        const double each = (monotonic_seconds() - began) / static_cast<double>(done);
        const auto text = fmt::format("\r[{:#<{}}{:.<{}}] round {} of {}, about {} left\033[K", "", filled,
                                      "", width - filled, done, all,
                                      experiments::time_words(each * static_cast<double>(all - done)));
        std::fputs(text.c_str(), stderr); // which throws nothing if the terminal has gone
        if (done == all) std::fputs(wipe, stderr);
        std::fflush(stderr);
    };
}

Outcome run(const Globals& globals, MeasureModelsOptions options) {
    if (const auto checked = check_experiment(globals, options.common); !checked)
        return std::unexpected(checked.error());
    if (const auto done = complete(options); !done) return failed(exit_usage, done.error().to_string());
    const auto root = host::Root::open();
    if (!root) return failed(root.error());
    ModelsReport report;
    {
        const CaughtSignals stop;
        if (!stop.file()) return failed({"cannot watch signals", {}, errno});
        options.setup.round.stop = stop.file().get();
        const auto testbed = options.pairs.empty() ? make_veth_testbed(*root, options.connections)
                                                   : make_nic_testbed(*root, options.pairs);
        if (!testbed) return failed(testbed.error());
        announce(options.setup);
        report = run_models(*root, *testbed, options.setup);
    }
    if (options.setup.progress) std::fputs(wipe, stderr);
    return finish_models(options.common, report);
}

void add_testbed_options(CLI::App& verb, MeasureModelsOptions& options) {
    verb.add_option("--connections", options.connections, "connections, each over an interface of its own")
        ->capture_default_str()
        ->check(in_range(1U, most_connections));
    verb.add_option("--nics", options.nics,
                    "pairs of NICs joined by a cable, as eth1:eth2,eth3:eth4, none of them in use; each "
                    "receives a connection; at the end they are put back")
        ->check(not_empty())
        ->excludes("--connections");
}

void add_round_options(CLI::App& verb, MeasureModelsOptions& options) {
    verb.add_option("--rounds", options.setup.rounds,
                    "rounds of each model and size; below 4 there is no verdict")
        ->capture_default_str()
        ->check(in_range(1, 1000));
    verb.add_option("--seconds", options.setup.round.seconds,
                    "length of a round (300ms, 2s; a number is seconds)")
        ->type_name("TIME")
        ->capture_default_str()
        ->transform(or_time(std::chrono::seconds(1)))
        ->check(in_range(0.1, 60.0));
    verb.add_option("--models", options.models,
                    "which, in this order; the others are compared with the first; none,none: an A/A run")
        ->capture_default_str();
    verb.add_option("--cpus", options.cpus,
                    "CPU list of the system under test; default: all this program may use")
        ->check(not_empty());
    verb.add_option("--sockbuf", options.setup.round.socket_buffer,
                    "socket buffer size; 0: the kernel's own sizing, at which veth pairs lose packets")
        ->capture_default_str()
        ->check(in_range(0, 1 << 30));
    add_result_options(verb, options.common);
}

void add_load_options(CLI::App& verb, MeasureModelsOptions& options) {
    verb.add_option("--direction", options.direction,
                    "the work of the system under test; answer: requests only, see --rr")
        ->capture_default_str()
        ->check(CLI::IsMember({"receive", "transmit", "both", "answer"}));
    auto* length = verb.add_option("--length", options.length, "bytes of one read or write")
                       ->default_str(std::to_string(LoadPoint{}.bytes))
                       ->check(in_range(std::size_t{1}, most_bytes));
    verb.add_option(
            "--sizes", options.sizes,
            fmt::format("a curve over these bytes of one read or write; alone or all: {}", paper_sizes))
        ->expected(0, 1)
        ->default_str("all")
        ->excludes(length);
    verb.add_option(
            "--rr", options.exchanges,
            "also requests and responses, one at a time on each connection: REQUEST[:RESPONSE] bytes, "
            "several between commas; alone: 1")
        ->expected(0, 1)
        ->default_str(one_byte);
}

} // namespace

void add_measure_models(CLI::App& parent, Globals& globals, int& status) {
    const auto options = std::make_shared<MeasureModelsOptions>();
    auto* verb = add_verb(
        parent,
        {.name = "models",
         .summary = "the four affinity models side by side, on veth pairs made for it or on NICs; needs root",
         .example = "affinityctl measure models --connections 4 --sizes --rr --svg models.svg",
         .answer = models_json_fields,
         .manual = "affinityctl-measure(1)"},
        globals, status, [&globals, options] { return run(globals, *options); });
    add_testbed_options(*verb, *options);
    add_load_options(*verb, *options);
    add_round_options(*verb, *options);
}

} // namespace affinityctl
