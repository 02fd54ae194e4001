// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"
#include "host/root.hpp"
#include "inventory/accept_sockets.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

namespace affinityd::inventory {

/// What workers have to do: where connections come and go between two looks, nobody can count them, but they
/// cost CPU time. That of a worker which has connections when it is looked at says nothing, as it may be for
/// these: neither what it did before nor after.
class AcceptWork {
  public:
    static constexpr std::chrono::milliseconds unit{2}; ///< of AcceptSocket::work

    /// `root` must outlive it.
    explicit AcceptWork(const host::Root& root) : root_(root) {}
    /// Fills in `work` of its listeners; nothing the first time.
    void note(AcceptSockets& process);
    /// Forgets processes that were not noted since the last time.
    void end_round();

  private:
    struct Seen {
        std::map<int, std::chrono::nanoseconds> used; ///< by thread; what is less than a unit counts later
        std::set<std::uint64_t> serving;              ///< cookies of listeners with connections
        bool is_there = true;
    };
    const host::Root& root_;
    std::unordered_map<TaskId, Seen> seen_;
};

/// The connections that were accepted: PassiveOpens of /proc/PID/net/snmp; no value: there are no such lines.
/// Source: RFC 4022, tcpPassiveOpens.
[[nodiscard]] std::optional<std::uint64_t> parse_passive_opens(std::string_view snmp);

} // namespace affinityd::inventory
