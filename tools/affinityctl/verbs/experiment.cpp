// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/experiment.hpp"

#include "affinity-ttcp/models/run.hpp"
#include "affinityctl/offline/cpu_expr.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/option_values.hpp"
#include "affinityctl/views/table.hpp"
#include "base/clock.hpp"
#include "experiments/frame/quiet.hpp"
#include "experiments/frame/refusal.hpp"
#include "experiments/frame/timings.hpp"
#include "experiments/frame/usable_cpus.hpp"
#include "policy/cpu_expr.hpp"
#include "topology/reader.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

namespace affinityctl {

namespace experiments = affinityd::experiments;
using affinityd::CpuSet;
using affinityd::Result;

void add_experiment_options(CLI::App& verb, ExperimentOptions& options) {
    verb.add_flag("--priority", options.priority, "run at raised priority (nice -10)");
    add_result_options(verb, options);
}

void add_result_options(CLI::App& verb, ExperimentOptions& options) {
    verb.add_option("--svg", options.svg, "also draw it into this file (- is standard output)")
        ->type_name("FILE")
        ->check(not_empty());
    verb.add_flag("--no-history", options.no_history, "do not keep the result");
    verb.add_option("--state-dir", options.state_dir, "the folder with the history in which it is kept")
        ->type_name("DIR")
        ->capture_default_str();
}

Result<Bench> read_bench() {
    auto root = affinityd::host::Root::open();
    if (!root) return std::unexpected(root.error());
    auto topology = affinityd::topology::read_topology(*root);
    if (!topology) return std::unexpected(topology.error());
    auto usable = experiments::usable_cpus(*topology);
    if (!usable) return std::unexpected(usable.error());
    return Bench{std::move(*root), std::move(*topology), std::move(*usable)};
}

std::expected<CpuSet, int> chosen_cpus(const Bench& bench, const std::string& expression) {
    if (expression.empty()) return bench.usable;
    const auto wrong = [&expression](const CpuExprFault& fault, int code) {
        const auto hint = fault.hint.empty() ? std::string() : " (" + printable(fault.hint) + ")";
        fmt::print(stderr, "affinityctl: --cpus {}: {}{}\n", printable(expression), printable(fault.message),
                   hint);
        return std::unexpected(code);
    };
    const auto expr = affinityd::policy::parse_cpu_expr(expression);
    if (!expr) return wrong(expr.error(), exit_usage);
    affinityd::machine::Machine machine{bench.topology, {}, {}};
    const auto found = evaluate_cpu_expr(*expr, {}, machine, bench.root);
    if (!found) return wrong(found.error(), exit_failure);
    if (const auto rest = *found - bench.usable; !rest.empty())
        fmt::print(
            stderr, "affinityctl: {} may not be used by this program, or {} offline, and {} left out\n",
            experiments::words_of(rest), rest.count() == 1 ? "is" : "are", rest.count() == 1 ? "is" : "are");
    return *found & bench.usable;
}

namespace {

/// What people should know of these CPUs before they read figures.
std::vector<std::string> remarks_on(const Bench& bench, const CpuSet& cpus) {
    std::vector<std::string> remarks;
    if (affinityd::ttcp::hypervisor().starts_with("TCG"))
        remarks.emplace_back("this CPU is emulated (QEMU TCG): times mean nothing here");
    if (const auto quiet = experiments::look_for_quiet(bench.root, cpus))
        if (auto remark = experiments::remark_of(*quiet); !remark.empty())
            remarks.push_back(std::move(remark));
    return remarks;
}

} // namespace

Result<ExperimentEnd> run_experiment(const Bench& bench, const ExperimentCourse& course,
                                     const ExperimentOptions& options,
                                     const std::function<void(experiments::Run&)>& body) {
    ExperimentEnd end;
    // A terminal may have gone, at which fmt::print would throw.
    const auto tell = [](const std::string& line) { std::fputs((line + "\n").c_str(), stderr); };
    double since = 0;
    const auto ending = experiments::supervise(
        {.doing = course.doing, .shows_progress = true, .wants_priority = options.priority},
        [&](experiments::Run& run) {
            tell(fmt::format("{} takes {}{}", course.doing, course.seconds < 1 ? "" : "about ",
                             experiments::time_words(course.seconds)));
            end.remarks = remarks_on(bench, course.cpus);
            for (const auto& remark : end.remarks)
                tell("affinityctl: " + remark);
            since = affinityd::monotonic_seconds();
            body(run);
        });
    if (!ending) return std::unexpected(ending.error());
    end.ending = *ending;
    end.seconds = affinityd::monotonic_seconds() - since;
    return end;
}

void keep_result(const ExperimentOptions& options, const affinityd::accounting::Experiment& experiment) {
    if (options.no_history) return;
    const auto kept = affinityd::accounting::keep_experiment(options.state_dir, experiment);
    if (!kept)
        fmt::print(stderr, "affinityctl: the result is not kept in the history: {}\n",
                   printable(kept.error().to_string()));
    else if (!kept->empty())
        fmt::print(stderr, "affinityctl: {}\n", printable(*kept));
}

int refuse(const std::string& sentence) {
    fmt::print(stderr, "affinityctl: {}\n", sentence);
    return exit_failure;
}

} // namespace affinityctl
