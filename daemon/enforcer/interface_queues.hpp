// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "enforcer/enforcer.hpp"

#include <string_view>

namespace affinityd::enforcer {

/// Sets how many queues an interface has, as `ethtool -L` does. It waits for the driver, which resets the
/// interface and holds the lock of all interfaces meanwhile: whoever reads one would wait, too.
class InterfaceQueues {
  public:
    /// `root` must outlive it.
    explicit InterfaceQueues(const host::Root& root) : root_(root) {}
    [[nodiscard]] Applied write(const machine::QueueCount& subject, const planner::Action& action) const;

  private:
    const host::Root& root_;
};

/// What each errno of CHANNELS_SET means. `busy`: the driver was not asked. That itself is busy (EBUSY) is no
/// matter of a moment: it may have reset the interface before it said so.
[[nodiscard]] Outcome queue_count_outcome(int code);
/// What may be behind the refusal of a number of queues, for people; "" of others, or if it is not known.
[[nodiscard]] std::string_view refusal_hint(const machine::Subject& subject, int code);

} // namespace affinityd::enforcer
