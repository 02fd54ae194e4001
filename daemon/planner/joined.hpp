// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/policy.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace affinityd::planner {

/// What a thread has asked for itself: a fact about it, like its name.
struct Joined {
    std::string policy;  ///< that its process was under
    std::string slot;    ///< it has put itself into; "": none
    bool serves = false; ///< it has asked for the CPU where the packets of its socket arrive
    friend bool operator==(const Joined&, const Joined&) = default;
};

/// True if threads of the policy's processes may put themselves into the slot.
[[nodiscard]] bool may_join(const policy::Policy& policy, std::string_view slot);

/// Index of the thread rule that a thread goes by: that of the slot that it has joined, if the policy lets
/// it, else the first that its name and place lead to. No value: the policy's own placement. `joined`: null
/// if it has joined nothing.
[[nodiscard]] std::optional<std::size_t> rule_of(const policy::Policy& policy, std::string_view name,
                                                 unsigned index, const Joined* joined);

/// True if what the thread has asked for is in force under this policy. It has a place of its own from then
/// on, also while its process settles.
[[nodiscard]] bool is_in_force(const policy::Policy& policy, const Joined* joined);

} // namespace affinityd::planner
