// SPDX-License-Identifier: Apache-2.0
#include "accounting/nic_shares.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace affinityd::accounting {

namespace {

constexpr double enough_to_serve = 1.0 / 10;
constexpr double too_few_to_serve = 1.0 / 30;
constexpr double forgotten = 1.0 / 1000;

} // namespace

void NicShares::add(const NicSockets& seen, std::chrono::seconds now) {
    if (seen.empty()) return;
    const double age = std::chrono::duration<double>(now - counted_) / half_life;
    const double kept = shares_.empty() ? 0 : std::exp2(-std::max(age, 0.0));
    for (auto& share : shares_)
        share.sockets *= kept;
    for (const auto& [nic, sockets] : seen) {
        auto at = std::ranges::lower_bound(shares_, nic, {}, &Share::nic);
        if (at == shares_.end() || at->nic != nic) at = shares_.insert(at, Share{.nic = nic});
        at->sockets += sockets * (1 - kept);
    }
    const double all = std::accumulate(shares_.begin(), shares_.end(), 0.0,
                                       [](double sum, const Share& share) { return sum + share.sockets; });
    for (auto& share : shares_)
        share.serves = share.sockets >= all * (share.serves ? too_few_to_serve : enough_to_serve);
    std::erase_if(shares_, [&](const Share& share) { return share.sockets < all * forgotten; });
    counted_ = now;
}

std::vector<std::string> NicShares::names() const {
    std::vector<std::string> names;
    for (const auto& share : shares_)
        if (share.serves) names.push_back(share.nic);
    return names;
}

} // namespace affinityd::accounting
