// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/action.hpp"

#include <string>

namespace affinityd::planner {

/// What is known of a subject that was changed by us and not yet put back.
struct Held {
    CpuSet original;    ///< mask before our first change
    CpuSet asked;       ///< mask we asked for last
    CpuSet granted;     ///< what the kernel made of it; equals `asked` until it was read back
    std::string policy; ///< on whose behalf
    friend bool operator==(const Held&, const Held&) = default;
};

/// Looks up the past of a subject; nullptr if it was never changed by us.
class Memory {
  public:
    virtual ~Memory() = default;
    [[nodiscard]] virtual const Held* find(const Subject& subject) const = 0;
};

} // namespace affinityd::planner
