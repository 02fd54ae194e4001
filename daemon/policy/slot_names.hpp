// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/fields.hpp"
#include "policy/policy.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::policy {

/// The slot that needs no thread rule: wherever the packets of a thread's socket arrive.
inline constexpr std::string_view arrivals_slot = "arrivals";
inline constexpr std::size_t longest_slot = 31; ///< bytes

/// True for 1 to 31 letters, digits, dots, dashes and underscores.
[[nodiscard]] bool is_slot_name(std::string_view text);
/// The `slot` of a thread rule; "": it was reported.
[[nodiscard]] std::string read_slot(const Fields::Entry& entry, Report& report);
/// The slots of `allow_join`; those that are wrong are reported and left out.
[[nodiscard]] std::vector<std::string> read_slots(const Fields::Entry& entry, Report& report);
/// Each slot is one rule's, and those that may be joined exist. `allowed`: where they stand; null: nowhere.
void check_slots(const Fields::Entry* allowed, const Policy& policy, Report& report);

} // namespace affinityd::policy
