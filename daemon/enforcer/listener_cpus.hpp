// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "enforcer/enforcer.hpp"
#include "host/root.hpp"

#include <optional>

namespace affinityd::enforcer {

/// Reads and sets the SO_INCOMING_CPU of listeners, through whoever has them open: the process where it was
/// last seen, the parent of that one, or another of its children (the newest 256), as workers of servers come
/// and go while their listeners stay. EBUSY: a system call on it did not come back in time, see
/// host::patiently().
class ListenerCpus {
  public:
    /// `root` must outlive it.
    explicit ListenerCpus(const host::Root& root) : root_(root) {}

    [[nodiscard]] Applied write(const machine::ListenerCpu& subject, const planner::Action& action) const;
    [[nodiscard]] Result<std::optional<machine::Setting>> read(const machine::ListenerCpu& subject) const;

  private:
    const host::Root& root_;
};

} // namespace affinityd::enforcer
