// SPDX-License-Identifier: Apache-2.0
#include "accounting/past_costs.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

namespace affinityd::accounting {

namespace {

constexpr std::size_t most_past = 8;        ///< periods remembered for each policy
constexpr std::size_t most_policies = 4096; ///< a history may name any number of them
constexpr std::string_view detail_head = "{\"text_hash\":";

std::optional<std::uint64_t> text_hash_of(std::string_view detail) {
    if (!detail.starts_with(detail_head) || !detail.ends_with('}')) return std::nullopt;
    detail.remove_prefix(detail_head.size());
    detail.remove_suffix(1);
    return parse_number<std::uint64_t>(detail);
}

} // namespace

std::string cost_detail(std::uint64_t text_hash) { return fmt::format("{}{}}}", detail_head, text_hash); }

void PastCosts::remember(const std::string& policy, PastCost past) {
    if (past_.size() >= most_policies && !past_.contains(policy)) return;
    auto& list = past_[policy];
    list.push_back(std::move(past));
    if (list.size() > most_past) list.erase(list.begin());
}

void PastCosts::recall(const std::vector<state::MeasurementRecord>& records) {
    for (const auto& record : records) {
        const auto text_hash = text_hash_of(record.detail);
        if (!text_hash) continue;
        PastCost part{record.time, *text_hash, static_cast<double>(record.bytes), record.cpu_seconds,
                      record.model};
        const auto list = past_.find(record.policies);
        // A period is kept as one record for each of its interfaces.
        if (list == past_.end() || std::tie(list->second.back().ended_at, list->second.back().text_hash) !=
                                       std::tie(part.ended_at, part.text_hash)) {
            remember(record.policies, std::move(part));
            continue;
        }
        list->second.back().bytes += part.bytes;
        list->second.back().cpu_seconds += part.cpu_seconds;
    }
}

const PastCost* PastCosts::before(const std::string& policy, std::uint64_t text_hash) const {
    const auto list = past_.find(policy);
    if (list == past_.end()) return nullptr;
    const auto last = std::ranges::find_if(list->second.rbegin(), list->second.rend(),
                                           [&](const auto& past) { return past.text_hash != text_hash; });
    return last == list->second.rend() ? nullptr : &*last;
}

} // namespace affinityd::accounting
