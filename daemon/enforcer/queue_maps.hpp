// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "enforcer/bounded_map.hpp"
#include "enforcer/enforcer.hpp"
#include "state/journal.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
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

    /// Before the number is changed: reads what is set. An Error: not all could be read, so the number is not
    /// to be changed.
    [[nodiscard]] Result<void> look(const machine::QueueCount& count);
    /// After that: what is set and has no record gets one.
    [[nodiscard]] Result<void> remember(const std::string& policy);
    /// After the change: those that kept what they had need none.
    [[nodiscard]] Result<void> forget_unchanged();
    /// Afterwards, too, and before the change is confirmed, so that a daemon that is killed in between leaves
    /// it to the next: what the driver reset is our doing, and nobody's wish, so originals still count. It
    /// is not what was asked for either, so that whoever compares it with its target puts it right. Where the
    /// number was refused (not `was_changed`), that is what has changed since look(). True: there was any. An
    /// Error: it is not known of all, or could not be written down.
    [[nodiscard]] Result<bool> follow_reset(const machine::QueueCount& count, bool was_changed);
    /// An interface has this many queues, by our doing.
    void note_number(const machine::QueueCount& count, const machine::Setting& number);
    /// It is found to have this many. If somebody else has changed that, the kernel has made some queues
    /// anew, and what these have is nobody's wish: originals still count. A map that is set may be that of
    /// whoever changed the number, but not that of a transmit queue if the change `is_recent`: drivers set
    /// these themselves, in the same moment. An Error: as above, and it is to be looked at again.
    [[nodiscard]] Result<void> follow_others(const machine::QueueCount& count, const machine::Setting& number,
                                             bool is_recent);

  private:
    using Settings = std::vector<std::pair<machine::Subject, machine::Setting>>;
    [[nodiscard]] Result<bool> look_at(const machine::Subject& subject);
    struct Change {
        state::Entry entry;
        machine::Setting now;
        bool has_gone; ///< there is no such queue
    };
    using Changes = std::vector<Change>;
    [[nodiscard]] Result<bool> has_queues(const machine::QueueCount& count, const Changes& changes) const;
    [[nodiscard]] Result<void> follow(const Changes& changes);
    state::Journal& journal_;
    Enforcer& enforcer_;
    Settings seen_; ///< maps and tables, before the change
    std::vector<machine::Subject> remembered_;
    std::unordered_map<machine::Subject, machine::Setting> before_; ///< what had records, before the change
    static constexpr std::size_t most_numbers = 4096;    ///< hosts of containers have many interfaces
    BoundedMap<machine::Setting> numbers_{most_numbers}; ///< of queues, as seen last
};

/// The number of queues whose change may reset this map or table; no value: it is neither.
[[nodiscard]] std::optional<machine::QueueCount> count_of(const machine::Subject& subject);
/// The numbers of queues of all interfaces, or those of one device, of which the journal has a record: of the
/// number, or of a map or table.
[[nodiscard]] std::vector<machine::QueueCount> counts_in(const state::Journal& journal,
                                                         std::optional<std::string_view> device = {});

} // namespace affinityd::enforcer
