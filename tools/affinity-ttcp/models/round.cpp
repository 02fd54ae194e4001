// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/round.hpp"

#include "affinity-ttcp/engine/activity.hpp"
#include "affinity-ttcp/engine/frequency.hpp"
#include "affinity-ttcp/engine/outcome.hpp"
#include "affinity-ttcp/models/priced_sample.hpp"
#include "affinity-ttcp/models/streams.hpp"
#include "affinity-ttcp/models/thread_use.hpp"
#include "base/clock.hpp"

namespace affinityd::ttcp {

using measure::Outcome;

namespace {

constexpr double round_grace_seconds = 5;

Result<void> place_all(const host::Root& root, const Testbed& testbed, const CpuSet& cpus, bool bound) {
    const auto count = static_cast<unsigned>(testbed.paths.size());
    for (unsigned i = 0; i < count; ++i) {
        const CpuSet where = bound ? CpuSet{cpu_of(i, count, cpus)} : cpus;
        if (auto done = place_interrupts(root, testbed.paths[i], where); !done) return done;
    }
    return {};
}

/// A round without an interface ends in many ways: its streams stall, its thread is not there to be moved.
RoundFault explained(RoundFault fault, const Testbed& testbed) {
    if (fault.outcome == Outcome::killed) return fault;
    for (const auto& path : testbed.paths)
        if (testbed.spaces[path.here].sys().text("class/net/" + path.nic + "/carrier") != "1")
            return {Outcome::link_lost, path.nic + " has gone or lost its link: " + fault.reason};
    return fault;
}

std::expected<Round, RoundFault> measure_round(const host::Root& root, const Testbed& testbed,
                                               const RoundSetup& setup, Model model) {
    if (auto done = place_all(root, testbed, setup.cpus, binds_interrupts(model)); !done)
        return std::unexpected(to_fault(done.error()));
    auto gate = Gate::make();
    if (!gate) return std::unexpected(to_fault(gate.error()));
    Streams streams(testbed, setup, model);
    if (auto done = streams.start(*gate); !done) return std::unexpected(to_fault(done.error()));
    if (auto done =
            streams.wait_until_connected(*gate, monotonic_seconds() + connect_seconds + round_grace_seconds);
        !done)
        return std::unexpected(done.error());

    const ThreadUse threads(root, testbed);
    RoundCosts costs;
    costs.first = read_activity(root);
    const double spent = threads.seconds();
    const auto counted = threads.cycles();
    gate->open();
    auto ends =
        streams.collect(monotonic_seconds() + setup.seconds + setup.stall_seconds + round_grace_seconds);
    if (!ends) return std::unexpected(ends.error());
    costs.threads_seconds = threads.seconds() - spent;
    if (const auto now = threads.cycles(); now && counted) costs.threads_cycles = *now - *counted;
    costs.last = read_activity(root);
    costs.hz = read_frequency(root);
    return make_round(testbed, setup.point.work, {std::move(*ends), streams.latencies()}, costs);
}

} // namespace

RoundFault to_fault(const Error& error) { return {outcome_of(error.code), error.to_string()}; }

std::expected<Round, RoundFault> run_round(const host::Root& root, const Testbed& testbed,
                                           const RoundSetup& setup, Model model) {
    auto round = measure_round(root, testbed, setup, model);
    if (!round) return std::unexpected(explained(std::move(round.error()), testbed));
    return round;
}

} // namespace affinityd::ttcp
