// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/sums.hpp"

#include <algorithm>

namespace affinityd::ttcp {

using measure::CpuReport;
using measure::LineReport;

std::vector<CpuReport> cpus_of(const ModelResult& result) {
    std::vector<CpuReport> sums;
    for (const auto& sample : result.samples)
        for (const auto& part : sample.cpus) {
            auto at = std::ranges::find(sums, part.cpu, &CpuReport::cpu);
            if (at == sums.end()) at = sums.insert(sums.end(), CpuReport{part.cpu});
            at->user_seconds += part.user_seconds;
            at->system_seconds += part.system_seconds;
            at->irq_seconds += part.irq_seconds;
            at->softirq_seconds += part.softirq_seconds;
            at->interrupts += part.interrupts;
        }
    return sums;
}

std::vector<LineReport> lines_of(const ModelResult& result) {
    std::vector<LineReport> sums;
    for (const auto& sample : result.samples)
        for (const auto& part : sample.lines) {
            const auto at = std::ranges::find_if(
                sums, [&](const LineReport& sum) { return sum.irq == part.irq && sum.cpu == part.cpu; });
            if (at == sums.end())
                sums.push_back(part);
            else
                at->count += part.count;
        }
    return sums;
}

} // namespace affinityd::ttcp
