// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/sample.hpp"

#include "affinity-ttcp/engine/activity.hpp"
#include "affinity-ttcp/engine/session.hpp"
#include "measure/result.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityd::ttcp {

using measure::EndReport;

namespace {

bool has_threads(const Testbed& testbed) {
    return std::ranges::all_of(testbed.paths, [](const Path& path) { return !path.threads.empty(); });
}

const char* note_of(bool threads, bool told) {
    if (threads && told)
        return "softirq is the NAPI threads under test; the time in interrupts is in neither";
    if (threads)
        return "softirq is the NAPI threads under test; this kernel does not measure the time in interrupts "
               "(no "
               "IRQ time accounting), which is in the part that they interrupted, as are softirqs that run "
               "on "
               "return from one";
    if (told) return "softirq and interrupts are those of the whole machine";
    return "softirq is that of the whole machine, as the timer tick sampled it; this kernel does not measure "
           "the "
           "time in softirqs and interrupts (no IRQ time accounting): what came while a process under test "
           "ran "
           "counts with that, too, so that the sum is too high rather than too low";
}

CostParts seconds_of(const EndReport& end, const RoundCosts& costs, bool threads, bool told) {
    CostParts parts{end.user_seconds + end.system_seconds, costs.threads_seconds, std::nullopt};
    if (threads) return parts;
    parts.softirq = 0;
    double interrupts = 0;
    for (const auto& cpu : cpus_between(costs.first, costs.last)) {
        parts.softirq += cpu.softirq_seconds;
        interrupts += cpu.irq_seconds;
    }
    if (told) parts.interrupts = interrupts;
    return parts;
}

} // namespace

CostParts CostParts::times(double factor) const {
    CostParts product{processes * factor, softirq * factor, std::nullopt};
    if (interrupts) product.interrupts = *interrupts * factor;
    return product;
}

Cost cost_of(const Testbed& testbed, const EndReport& end, const RoundCosts& costs) {
    const bool threads = has_threads(testbed), told = tells_interrupt_time(costs.last);
    Cost cost;
    cost.cpu_seconds = seconds_of(end, costs, threads, told);
    cost.parts_note = note_of(threads, told);
    const char* of = threads ? "the processes and NAPI threads under test"
                             : "the processes under test and all interrupt work of the machine";
    if (end.cycles && costs.threads_cycles && threads) {
        cost.cycles = CostParts{static_cast<double>(*end.cycles), static_cast<double>(*costs.threads_cycles),
                                std::nullopt};
        cost.cycles_source = fmt::format("hardware counters of {}", of);
    } else if (costs.hz) {
        cost.cycles = cost.cpu_seconds.times(*costs.hz);
        cost.cycles_source = fmt::format("CPU time of {} times {:.3f} GHz", of, *costs.hz / 1e9);
    } else {
        cost.cycles_source = no_cost;
    }
    return cost;
}

} // namespace affinityd::ttcp
