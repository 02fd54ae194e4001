// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/lab/experiment.hpp"

#include "affinityctl/offline/cpu_expr.hpp"
#include "affinityctl/present/output.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/escape.hpp"
#include "experiments/nearness.hpp"
#include "policy/cpu_expr.hpp"
#include "topology/reader.hpp"

#include <CLI/CLI.hpp>
#include <cctype>
#include <cstdio>

#include <fmt/format.h>

namespace affinityctl {

namespace experiments = affinityd::experiments;
namespace measure = affinityd::measure;
using affinityd::CpuSet;
using affinityd::escaped;
using affinityd::Result;
using nlohmann::json;

void add_experiment_options(CLI::App& verb, ExperimentOptions& options) {
    verb.add_option("--cpus", options.cpus, "a CPU-set expression as in policies; default: all allowed")
        ->type_name("EXPR")
        ->check(not_empty());
    verb.add_flag("--priority", options.priority, "run at raised priority (nice -10)");
    add_picture(verb, options.svg, "also draw it into this file");
    verb.add_flag("--no-history", options.no_history, "do not keep the result");
    verb.add_option("--state-dir", options.state_dir, "the folder of the history")
        ->type_name("DIR")
        ->capture_default_str();
}

void tell_stderr(const std::string& line) { std::fputs((line + "\n").c_str(), stderr); }

namespace {

/// The CPUs of `usable` that an expression as in policies stands for; all of them for "".
CpuSet chosen_cpus(const Bench& bench, const std::string& expression) {
    if (expression.empty()) return bench.usable;
    const auto wrong = [&expression](const CpuExprFault& fault, Exit code) {
        const auto hint = fault.hint.empty() ? std::string() : " (" + escaped(fault.hint) + ")";
        return CallError{code,
                         fmt::format("--cpus {}: {}{}", escaped(expression), escaped(fault.message), hint)};
    };
    const auto expr = affinityd::policy::parse_cpu_expr(expression);
    if (!expr) throw wrong(expr.error(), exit_usage);
    affinityd::machine::Machine machine{bench.topology, {}, {}};
    const auto found = evaluate_cpu_expr(*expr, {}, machine, bench.root);
    if (!found) throw wrong(found.error(), exit_failure);
    if (const auto rest = *found - bench.usable; !rest.empty())
        tell_stderr("affinityctl: left out, as offline or not for this program: " +
                    experiments::words_of(rest));
    return *found & bench.usable;
}

/// For readers of figures of these CPUs.
std::vector<std::string> remarks_on(const Bench& bench, const CpuSet& cpus) {
    std::vector<std::string> remarks;
    if (experiments::is_emulated())
        remarks.emplace_back("this CPU is emulated (QEMU TCG): times mean nothing here");
    if (const auto quiet = experiments::look_for_quiet(bench.root, cpus))
        if (auto remark = experiments::remark_of(*quiet); !remark.empty())
            remarks.push_back(std::move(remark));
    return remarks;
}

void keep_result(const ExperimentOptions& options, const affinityd::accounting::Experiment& experiment) {
    const auto kept = affinityd::accounting::keep_experiment(options.state_dir, experiment);
    if (!kept)
        tell_stderr("affinityctl: the result is not kept in the history: " +
                    escaped(kept.error().to_string()));
    else if (!kept->empty())
        tell_stderr("affinityctl: " + escaped(*kept));
}

} // namespace

Bench read_bench(const Globals& globals, const ExperimentOptions& options) {
    need(check_picture(globals, options.svg));
    need(check_is_live(globals));
    Bench bench{need(affinityd::host::Root::open()), {}, {}, {}};
    bench.topology = need(affinityd::topology::read_topology(bench.root));
    bench.usable = need(experiments::usable_cpus(bench.topology));
    bench.chosen = chosen_cpus(bench, options.cpus);
    return bench;
}

MeasuredOn run_experiment(const Bench& bench, const ExperimentCourse& course,
                          const ExperimentOptions& options,
                          const std::function<Result<bool>(experiments::Run&)>& body) {
    MeasuredOn on{.model = affinityd::topology::read_cpu_model(bench.root), .cpus = course.cpus.to_list()};
    Result<bool> whole = false;
    const auto ending = need(experiments::supervise(
        {.doing = course.doing, .wants_priority = options.priority}, [&](experiments::Run& run) {
            tell_stderr(fmt::format("{} takes {}{}", course.doing, course.seconds < 1 ? "" : "about ",
                                    experiments::time_words(course.seconds)));
            on.remarks = remarks_on(bench, course.cpus);
            for (const auto* sentences : {&course.left_out, &std::as_const(on).remarks})
                for (const auto& sentence : *sentences)
                    tell_stderr("affinityctl: " + sentence);
            const double since = affinityd::monotonic_seconds();
            whole = body(run);
            on.seconds = affinityd::monotonic_seconds() - since;
        }));
    const bool is_whole = need(std::move(whole)) && ending != experiments::Ending::stopped;
    if (!is_whole && !course.shows_part)
        throw CallError{exit_failure, "stopped before its end; nothing is kept"};
    return on;
}

Document finish_experiment(const ExperimentOptions& options, Document document,
                           affinityd::accounting::Experiment kept) {
    if (kept.detail.empty()) kept.detail = dump(document.value);
    if (!options.no_history) keep_result(options, kept);
    document.picture = options.svg;
    return document;
}

Document experiment_document(const std::string& title, const std::string& method) {
    Document document;
    document.title = title;
    document.indent = -1;
    document.by_columns = true;
    document.add(Document::Line{{{title, Document::Look::bold}}}, Document::Where::text);
    document.line(method, "  ");
    return document;
}

std::string titled(const std::string& title, const std::string& model) {
    return title + (model.empty() ? "" : " (" + model + ")");
}

std::string as_sentence(std::string words) {
    if (words.empty()) return words;
    words[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(words[0])));
    if (words.back() != '.') words += '.';
    return words;
}

void add_conclusions(Document& document, const std::vector<std::string>& findings,
                     const std::vector<std::string>& remarks, const std::string& meaning) {
    bool is_first = true;
    for (const auto* list : {&findings, &remarks})
        for (const auto& sentence : *list)
            document.line(as_sentence(sentence), "* ").gap = std::exchange(is_first, false);
    if (!meaning.empty()) document.line(meaning).gap = is_first;
}

json interval_json(const std::optional<measure::Interval>& interval, double unit) {
    return interval ? record(interval_fields,
                             {interval->estimate / unit, interval->low / unit, interval->high / unit})
                    : json();
}

json change_json(const measure::Comparison& change) {
    if (change.verdict == measure::Verdict::not_enough) return {};
    return record(change_fields,
                  {to_string(change.verdict), change.change.estimate, change.change.low, change.change.high});
}

std::string name_cell(const json& row) { return cell(row.at("name")); }

Document::Point point_of(std::string label, const std::optional<measure::Interval>& interval, double unit) {
    Document::Point point{.failed = !interval, .label = std::move(label)};
    if (!interval) return point;
    point.y = interval->estimate / unit;
    point.low = interval->low / unit;
    point.high = interval->high / unit;
    return point;
}

} // namespace affinityctl
