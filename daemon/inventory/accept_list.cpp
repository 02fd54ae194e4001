// SPDX-License-Identifier: Apache-2.0
#include "inventory/accept_list.hpp"

namespace affinityd::inventory {

namespace {

constexpr std::chrono::seconds longest_rest{4}; // a new connection is to have its listener's CPU

std::vector<AcceptSockets> read_all(AcceptReader& reader, const std::vector<TaskId>& processes,
                                    const std::stop_token& stop) {
    reader.keep_only(processes);
    std::vector<AcceptSockets> found;
    for (const auto& process : processes) {
        if (stop.stop_requested()) break;
        found.push_back(reader.read(process));
    }
    return found;
}

} // namespace

AcceptList::AcceptList(const host::Root& root)
    : reader_(root),
      thread_([this](const auto& processes, const auto& stop) { return read_all(reader_, processes, stop); },
              longest_rest) {}

} // namespace affinityd::inventory
