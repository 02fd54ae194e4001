// SPDX-License-Identifier: Apache-2.0
#include "app/latency_source.hpp"

#include "accounting/experiments.hpp"
#include "host/blocked_signals.hpp"
#include "topology/reader.hpp"

#include <utility>

namespace affinityd::app {

namespace {

constexpr std::chrono::seconds longest{2};
constexpr std::chrono::microseconds patience{100};

machine::KnownLatencies unused(const std::string& why) {
    return {std::nullopt, "the latencies that are kept cannot be read (" + why + ")", 0};
}

/// The newest latencies, unless they are the known ones.
std::optional<machine::KnownLatencies> newest(const host::Root& root, const std::string& state_dir,
                                              const topology::Topology& topology,
                                              const machine::KnownLatencies& known) {
    const auto differs = [&](machine::KnownLatencies now) -> std::optional<machine::KnownLatencies> {
        if (now.time == known.time && now.unused == known.unused && !now.level && !known.level)
            return std::nullopt;
        return now;
    };
    const auto kept = accounting::newest_experiment(state_dir, "latency");
    if (!kept) return differs(unused(kept.error().to_string()));
    if (!*kept) return differs({});
    const auto time = (*kept)->time;
    if (time == known.time) return std::nullopt;
    auto latencies = topology::latencies_from_json((*kept)->detail);
    auto now = latencies ? machine::latencies_here(*latencies, topology, topology::read_cpu_model(root))
                         : unused(latencies.error().to_string());
    now.time = time;
    return now;
}

} // namespace

void LatencySource::begin(const World& world, const std::string& state_dir) {
    until_ = std::chrono::steady_clock::now() + longest;
    if (reading_.valid() || state_dir.empty() || !world.placements().measured) return;
    const host::BlockedSignals blocked; // they are the loop's
    reading_ = std::async(std::launch::async, [this, state_dir, topology = world.machine().topology,
                                               known = world.machine().latencies] {
        return newest(root_, state_dir, topology, known);
    });
}

bool LatencySource::step(World& world, const OutOfTime& out_of_time) {
    while (reading_.valid() && reading_.wait_for(patience) != std::future_status::ready) {
        if (std::chrono::steady_clock::now() > until_) return true;
        if (out_of_time()) return false;
    }
    if (!reading_.valid()) return true;
    if (auto found = reading_.get()) world.update(std::move(*found));
    return true;
}

} // namespace affinityd::app
