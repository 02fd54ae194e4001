// SPDX-License-Identifier: Apache-2.0
#include "state/listener_place.hpp"

#include <utility>
#include <variant>

namespace affinityd::state {

Result<void> note_place(Journal& journal, const machine::ListenerCpu& listener) {
    const auto* entry = journal.contents().held().queues().find_entry(listener);
    const auto* known = entry == nullptr ? nullptr : std::get_if<machine::ListenerCpu>(&entry->subject);
    if (known == nullptr || (known->process == listener.process && known->number == listener.number &&
                             known->inode == listener.inode))
        return {};
    auto record = journal.find(listener); // with what is not confirmed
    return record ? journal.put(listener, std::move(*record)) : Result<void>();
}

} // namespace affinityd::state
