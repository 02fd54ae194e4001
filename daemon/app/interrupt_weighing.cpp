// SPDX-License-Identifier: Apache-2.0
#include "app/interrupt_weighing.hpp"

#include "accounting/softirq_time.hpp"
#include "host/boot_clock.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::app {

void InterruptWeighing::weigh() {
    constexpr double long_enough = 1; // seconds, for what is counted in hundredths
    if (!current_->has_interrupts()) return;
    const auto stat = root_.proc().read("stat");
    if (!stat || !*stat) return;
    const auto now = Clock::now();
    auto seconds = accounting::interrupt_seconds(**stat, static_cast<double>(host::ticks_a_second()));
    const auto before = std::exchange(before_, std::move(seconds));
    const auto since = std::exchange(at_, now);
    const double time = since ? std::chrono::duration<double>(now - *since).count() : 0;
    if (time < long_enough) return;
    std::map<unsigned, planner::Weight> weights;
    for (const auto& [cpu, spent] : before_)
        if (const auto found = before.find(cpu); found != before.end() && spent >= found->second)
            weights[cpu] = static_cast<planner::Weight>(std::min((spent - found->second) / time, 1.0) *
                                                        static_cast<double>(planner::one_cpu));
    current_->weigh_interrupts(weights);
}

} // namespace affinityd::app
