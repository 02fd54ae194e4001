// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/sharers/wakes.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace affinityctl {

/// The conditions of a thread rule, affinityd.policy(5).
struct ThreadChoice {
    std::vector<std::string> names; ///< patterns, in printable ASCII; empty: any name
    std::optional<std::pair<unsigned, unsigned>> index;
};

/// What one rule says to mean these threads and no other that the process had; no value: nothing can, as
/// other threads have their names, and their places are not in a row. Names come first: places change when
/// threads end.
[[nodiscard]] std::optional<ThreadChoice> choose_threads(const std::map<Wakes::Thread, WokenThread>& threads,
                                                         const std::vector<Wakes::Thread>& members);

/// A pattern for a name, in printable ASCII that needs no escape in YAML's double quotes but " and \. Bytes
/// that are not are ?, so it may mean other names, too. "" for "": there is no such pattern.
[[nodiscard]] std::string name_pattern(std::string_view name);

} // namespace affinityctl
