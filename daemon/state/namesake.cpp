// SPDX-License-Identifier: Apache-2.0
#include "state/namesake.hpp"

#include <fmt/format.h>

namespace affinityd::state {

namespace {

/// The index of a virtual interface; 0: it is none, or its index is not known.
unsigned index_of(const machine::Subject& subject) {
    return std::visit(
        [](const auto& what) {
            if constexpr (requires { what.ifindex; })
                return what.device.find('/') == std::string::npos ? what.ifindex : 0;
            return 0U;
        },
        subject);
}

} // namespace

std::optional<Entry> find_namesake(const JournalContents& contents, const machine::Subject& subject) {
    const auto index = index_of(subject);
    if (index == 0) return std::nullopt;
    const auto& past = contents.past();
    for (const auto* records : {&contents.held(), &past.kept(), &past.put_back()}) {
        const auto* entry = records->queues().find_entry(subject);
        if (entry == nullptr) continue;
        const auto other = index_of(entry->subject);
        return other == 0 || other == index ? std::nullopt : std::optional(*entry);
    }
    return std::nullopt;
}

machine::Subject by_index(machine::Subject subject) {
    std::visit(
        [](auto& what) {
            if constexpr (requires { what.ifindex; }) what.device = fmt::format(":{}", what.ifindex);
        },
        subject);
    return subject;
}

} // namespace affinityd::state
