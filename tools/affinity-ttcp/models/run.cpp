// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/run.hpp"

#include "affinity-ttcp/engine/activity.hpp"
#include "base/clock.hpp"

#include <algorithm>

#include <cpuid.h>
#include <fmt/format.h>

namespace affinityd::ttcp {

namespace {

/// Code, caches and the CPU's frequency settle before the first model is measured, and so do the threads that
/// handle packets: where they run at first, all on one CPU and the processes on another, costs requests and
/// responses half of their rate. It takes the scheduler up to four seconds of short rounds to spread them
/// (50, then 90 thousand requests a second, 20,000 rescheduling interrupts a second, then none), or longer in
/// one long round, since it moves little that runs.
constexpr int warm_up_rounds = 16;
constexpr double warm_up_seconds = 0.25; ///< of each
constexpr double look_seconds = 0.5;     ///< at what others do before it begins
/// For a round's processes to start, connect and end.
constexpr double overhead_seconds = 0.05;

std::vector<PointResult> empty_results(const ModelsSetup& setup) {
    std::vector<PointResult> results;
    for (const auto& point : setup.points) {
        results.push_back({point, {}});
        for (const Model model : setup.models)
            results.back().models.push_back({model, {}});
    }
    return results;
}

} // namespace

std::size_t rounds_of(const ModelsSetup& setup) {
    return setup.points.size() * setup.models.size() * setup.rounds;
}

double expected_seconds(const ModelsSetup& setup) {
    return look_seconds +
           warm_up_rounds * (std::min(warm_up_seconds, setup.round.seconds) + overhead_seconds) +
           static_cast<double>(rounds_of(setup)) * (setup.round.seconds + overhead_seconds);
}

ModelsReport run_models(const host::Root& root, const Testbed& testbed, const ModelsSetup& setup) {
    ModelsReport report;
    report.outcome = measure::Outcome::done;
    report.setup = testbed.description;
    if (const auto note = emulation_note(hypervisor()); !note.empty())
        report.setup += fmt::format(". {}", note);
    report.connections = static_cast<unsigned>(testbed.paths.size());
    report.round_seconds = setup.round.seconds;
    report.cpus = setup.round.cpus;
    report.points = empty_results(setup);
    const double began = monotonic_seconds();
    report.busy_before = look_around(root, std::nullopt, look_seconds).cpus;
    const auto end = [&](const RoundFault& fault) {
        report.outcome = fault.outcome;
        report.reason = fault.reason;
        report.seconds = monotonic_seconds() - began;
        return report;
    };
    RoundSetup present = setup.round;
    present.point = setup.points.front();
    present.seconds = std::min(warm_up_seconds, setup.round.seconds);
    for (int i = 0; i < warm_up_rounds; ++i)
        if (const auto round = run_round(root, testbed, present, setup.models.front()); !round)
            return end(round.error());
    present.seconds = setup.round.seconds;
    if (setup.progress) setup.progress(0, rounds_of(setup));
    const auto order = interleave(setup.points.size() * setup.models.size(), setup.rounds);
    for (std::size_t i = 0; i < order.size(); ++i) {
        auto& point = report.points[order[i] / setup.models.size()];
        auto& result = point.models[order[i] % setup.models.size()];
        present.point = point.point;
        auto round = run_round(root, testbed, present, result.model);
        if (!round) return end(round.error());
        report.cycles_source = round->cycles_source;
        report.parts_note = round->parts_note;
        result.samples.push_back(std::move(round->sample));
        if (setup.progress) setup.progress(i + 1, order.size());
    }
    report.seconds = monotonic_seconds() - began;
    return report;
}

std::string hypervisor() {
#if defined(__x86_64__) || defined(__i386__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & 1U << 31) == 0)
        return {}; // bit 31: a hypervisor is present
    __cpuid(0x40000000, a, b, c, d);
    std::string name;
    for (const unsigned part : {b, c, d})
        for (unsigned shift = 0; shift < 32; shift += 8)
            if (const char letter = static_cast<char>(part >> shift & 0xff); letter > ' ' && letter <= '~')
                name += letter;
    return name;
#else
    return {};
#endif
}

std::string_view emulation_note(std::string_view hypervisor) {
    if (!hypervisor.starts_with("TCG")) return {};
    return "This CPU is emulated (QEMU TCG): throughput and cost mean nothing here; where interrupts came "
           "and processes ran does.";
}

} // namespace affinityd::ttcp
