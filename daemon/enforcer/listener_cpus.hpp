// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "enforcer/enforcer.hpp"
#include "host/root.hpp"
#include "inventory/listener_holders.hpp"

#include <memory>
#include <optional>

namespace affinityd::enforcer {

/// Reads and sets the SO_INCOMING_CPU of listeners, through whoever has them open: the process where it was
/// last seen, the parent of that one, or another of its children (the newest 256), as workers of servers come
/// and go while their listeners stay; under another descriptor, too, and in the network namespace of this
/// process, whoever it is. Whose family takes long to search has it searched for a twentieth of the time
/// only. EBUSY: system calls on it, or on a process that is likely to have it, did not come back in time, see
/// host::patiently(); EOWNERDEAD: it still listens, but nobody was found who has it open.
class ListenerCpus {
  public:
    explicit ListenerCpus(const host::Root& root)
        : holders_(std::make_shared<inventory::ListenerHolders>(root)) {}

    [[nodiscard]] Applied write(const machine::ListenerCpu& subject, const planner::Action& action) const;
    [[nodiscard]] Result<std::optional<machine::Setting>> read(const machine::ListenerCpu& subject) const;

  private:
    std::shared_ptr<inventory::ListenerHolders> holders_; ///< shared with calls that do not come back
};

} // namespace affinityd::enforcer
