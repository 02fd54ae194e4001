// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "enforcer/enforcer.hpp"
#include "state/journal.hpp"

#include <string>
#include <unordered_map>
#include <vector>

namespace affinityd::enforcer {

/// The steering maps and flow tables of an interface's queues while it is given another number of them: those
/// of queues that go are freed with them, and drivers may reset the others. What nobody has a record of
/// would be lost then: it gets one, by which it is put back as soon as the queue is there and no policy wants
/// anything else. What has a record, interrupts too, is still ours after the reset. Source:
/// rx_queue_release() in net/core/net-sysfs.c, netif_reset_xps_queues_gt() in net/core/dev.c.
class QueueMaps {
  public:
    /// References must outlive it.
    QueueMaps(state::Journal& journal, Enforcer& enforcer) : journal_(journal), enforcer_(enforcer) {}

    /// Before the number is changed: what is set and has no record gets one.
    [[nodiscard]] Result<void> remember(const machine::QueueCount& count, const std::string& policy);
    /// Afterwards: those that kept what they had need none.
    [[nodiscard]] Result<void> forget_unchanged();
    /// Afterwards, too: what the driver reset is our doing, and nobody's wish, so originals still count. It
    /// is not what was asked for either, so that whoever compares it with its target puts it right. Where the
    /// number was refused (not `was_changed`), that is what has changed since remember(). True: there was
    /// any.
    [[nodiscard]] Result<bool> follow_reset(const machine::QueueCount& count, bool was_changed);

  private:
    [[nodiscard]] Result<bool> remember_one(const machine::Subject& subject, const std::string& policy);
    state::Journal& journal_;
    Enforcer& enforcer_;
    std::vector<machine::Subject> remembered_;
    std::unordered_map<machine::Subject, machine::Setting> before_; ///< what had records, before the change
};

} // namespace affinityd::enforcer
