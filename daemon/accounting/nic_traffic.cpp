// SPDX-License-Identifier: Apache-2.0
#include "accounting/nic_traffic.hpp"

#include "accounting/softirq_time.hpp"
#include "host/boot_clock.hpp"
#include "host/root.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityd::accounting {

void NicTraffic::begin(std::vector<std::string> nics) { reading_ = {std::move(nics), 0, {}}; }

std::optional<std::uint64_t> NicTraffic::read(const std::string& nic) const {
    const auto received = root_.sys().number(fmt::format("class/net/{}/statistics/rx_bytes", nic));
    const auto sent = root_.sys().number(fmt::format("class/net/{}/statistics/tx_bytes", nic));
    if (!received || !sent) return std::nullopt;
    return static_cast<std::uint64_t>(*received) + (nic == "lo" ? 0 : static_cast<std::uint64_t>(*sent));
}

void NicTraffic::take(const std::string& nic) {
    const auto counter = read(nic);
    auto& last = counters_[nic];
    auto& total = totals_[nic];
    if (counter && last && *counter > *last) {
        total.bytes += *counter - *last;
        reading_.grown[nic] += *counter - *last;
    }
    last = counter;
}

/// Shares the softirq time among the interfaces, and forgets those that were not asked for.
void NicTraffic::finish() {
    std::ranges::sort(reading_.nics);
    const auto is_unasked = [&](const auto& entry) {
        return !std::ranges::binary_search(reading_.nics, entry.first);
    };
    std::erase_if(counters_, is_unasked);
    std::erase_if(totals_, is_unasked);
    const auto stat = root_.proc().read("stat", 4096);
    const auto softirqs = root_.proc().read("softirqs");
    if (!stat || !*stat || !softirqs || !*softirqs) return;
    const auto now = network_softirq_seconds(**stat, **softirqs, static_cast<double>(host::ticks_a_second()));
    const double spent = now && softirqs_ ? std::max(0.0, *now - *softirqs_) : 0;
    softirqs_ = now;
    double all = 0;
    for (const auto& [nic, bytes] : reading_.grown)
        all += static_cast<double>(bytes);
    for (const auto& [nic, bytes] : reading_.grown)
        totals_[nic].softirq_seconds += spent * static_cast<double>(bytes) / all;
}

bool NicTraffic::step(const std::function<bool()>& out_of_time) {
    while (reading_.next < reading_.nics.size()) {
        take(reading_.nics[reading_.next++]);
        if (out_of_time()) return false;
    }
    finish();
    reading_ = {};
    return true;
}

} // namespace affinityd::accounting
