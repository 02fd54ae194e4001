// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/run.hpp"

#include "affinity-ttcp/models/emulation.hpp"
#include "base/clock.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityd::ttcp {

namespace {

/// Code, caches and the CPU's frequency settle before the first model is measured.
constexpr double warm_up_seconds = 0.5;

} // namespace

ModelsReport run_models(const host::Root& root, const Testbed& testbed, const ModelsSetup& setup) {
    ModelsReport report;
    report.outcome = measure::Outcome::done;
    report.setup = testbed.description;
    if (const auto note = emulation_note(hypervisor()); !note.empty())
        report.setup += fmt::format(". {}", note);
    report.connections = static_cast<unsigned>(testbed.paths.size());
    report.direction = setup.round.receives ? "receive" : "transmit";
    report.round_seconds = setup.round.seconds;
    report.cpus = setup.round.cpus;
    for (const Model model : setup.models)
        report.results.push_back({model, {}});
    const double began = monotonic_seconds();
    const auto end = [&](const RoundFault& fault) {
        report.outcome = fault.outcome;
        report.reason = fault.reason;
        report.seconds = monotonic_seconds() - began;
        return report;
    };
    RoundSetup warm_up = setup.round;
    warm_up.seconds = std::min(warm_up_seconds, setup.round.seconds);
    if (const auto round = run_round(root, testbed, warm_up, setup.models.front()); !round)
        return end(round.error());
    const auto order = interleave(setup.models.size(), setup.rounds);
    for (std::size_t i = 0; i < order.size(); ++i) {
        auto round = run_round(root, testbed, setup.round, setup.models[order[i]]);
        if (!round) return end(round.error());
        report.cycles_source = round->cycles_source;
        report.results[order[i]].samples.push_back(std::move(round->sample));
        if (setup.progress) setup.progress(i + 1, order.size());
    }
    report.seconds = monotonic_seconds() - began;
    return report;
}

} // namespace affinityd::ttcp
