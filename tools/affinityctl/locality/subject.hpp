// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/root.hpp"
#include "netdev/nic.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace affinityctl {

/// The processes whose reads are meant.
struct LocalitySubject {
    enum class Kind { all, process, nic, policy, unit };
    Kind kind = Kind::all;
    std::string name;              ///< as it was typed; "" for all
    int pid = 0;                   ///< of a process
    std::vector<unsigned> devices; ///< of an interface: its ifindex, and those of what is stacked on it
};

/// The interface and all that are on top of it: a flow is known by the uppermost.
[[nodiscard]] std::vector<unsigned> devices_over(std::span<const affinityd::netdev::Nic> nics,
                                                 const std::string& name);

/// Processes under a policy by the daemon's GetStatus; no value: it has no such policy.
[[nodiscard]] std::optional<std::vector<int>> processes_under(const nlohmann::json& status,
                                                              const std::string& policy);

/// The policy by the daemon's GetStatus that steers listeners, or says why not, and has one of these
/// processes; "": none.
[[nodiscard]] std::string steering_policy(const nlohmann::json& status, const std::vector<int>& pids);

/// The meaning of a word: a process or thread id, an interface, a policy of the daemon's (`status` is its
/// GetStatus, or null), a systemd unit, in this order. An Error says that there is none; its code is ESRCH
/// for a process, ENOTCONN where a daemon that does not answer would have to be asked, else ENOENT.
[[nodiscard]] affinityd::Result<LocalitySubject> read_subject(const affinityd::host::Root& root,
                                                              const std::string& word,
                                                              std::span<const affinityd::netdev::Nic> nics,
                                                              const nlohmann::json& status);

} // namespace affinityctl
