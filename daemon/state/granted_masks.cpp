// SPDX-License-Identifier: Apache-2.0
#include "state/granted_masks.hpp"

#include "base/hash.hpp"
#include "state/place.hpp"
#include "state/record.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace affinityd::state {

namespace {

/// By the subject's identity; and by its place, if it has one, in case it is met under another name. What is
/// only a name does not count: an interface that takes it may have set the same mask itself.
std::vector<std::uint64_t> hashes_of(const machine::Subject& subject, const machine::Setting& setting) {
    std::vector<std::uint64_t> hashes;
    const auto add = [&](const std::string& text) {
        hashes.push_back(fnv1a_64(text + '\t' + setting.to_string()));
    };
    if (!has_only_name(subject)) add(identity_of(subject));
    for (const auto& text : {place_of(subject), folder_of(subject)})
        if (!text.empty()) add(text);
    return hashes;
}

bool is_of_task(const machine::Subject& subject) {
    return std::holds_alternative<machine::TaskMask>(subject);
}

} // namespace

void GrantedMasks::note(const machine::Subject& subject, const machine::Setting& setting) {
    auto& [young, old] = is_of_task(subject) ? tasks_ : queues_;
    for (const auto hash : hashes_of(subject, setting)) {
        if (young.size() >= most / 2) old = std::exchange(young, {});
        young.insert(hash);
    }
}

bool GrantedMasks::contains(const machine::Subject& subject, const machine::Setting& setting) const {
    const auto& [young, old] = is_of_task(subject) ? tasks_ : queues_;
    if (young.empty() && old.empty()) return false;
    return std::ranges::any_of(hashes_of(subject, setting),
                               [&](auto hash) { return young.contains(hash) || old.contains(hash); });
}

void GrantedMasks::forget(const machine::Subject& subject, const machine::Setting& setting) {
    auto& [young, old] = is_of_task(subject) ? tasks_ : queues_;
    for (const auto hash : hashes_of(subject, setting)) {
        young.erase(hash);
        old.erase(hash);
    }
}

} // namespace affinityd::state
