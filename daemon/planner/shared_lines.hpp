// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/placements.hpp"

#include <functional>
#include <string_view>

namespace affinityd::planner {

/// One interrupt line may serve several interfaces, and devices that are none. It has one mask: among the
/// targets of such a line, that of the first policy counts whose interface has a handler on it now, and the
/// others say whom they give way to.
void settle_shared_lines(const machine::Machine& machine, Placements& into);

/// The target that decides what this one's subject is set to: itself, but on a line that serves others, too.
/// `is_released` says which policies are let go: they decide nothing.
[[nodiscard]] const QueueTarget& decider(const Placements& placements, const QueueTarget& target,
                                         const std::function<bool(std::string_view policy)>& is_released);

} // namespace affinityd::planner
