// SPDX-License-Identifier: Apache-2.0
#include "inventory/search_credit.hpp"

#include <algorithm>
#include <cstddef>

namespace affinityd::inventory {

namespace {

constexpr std::size_t many =
    1024; // so many may have used some at a time before who has all back is forgotten

} // namespace

bool SearchCredit::has_any(std::uint64_t whose, Time now) const {
    const auto found = whole_at_.find(whose);
    return found == whole_at_.end() || found->second - now < most * times_as_long;
}

void SearchCredit::spend(std::uint64_t whose, std::chrono::nanoseconds used, Time now) {
    if (whole_at_.size() >= many)
        std::erase_if(whole_at_, [&](const auto& one) { return one.second <= now; });
    auto& whole = whole_at_.try_emplace(whose, now).first->second;
    whole = std::max(whole, now) + used * times_as_long;
}

} // namespace affinityd::inventory
