// SPDX-License-Identifier: Apache-2.0
// Reads what doctor examines of this machine or a recording.
#pragma once

#include "accounting/nic_usage.hpp"
#include "affinityctl/offline/still_machine.hpp"
#include "affinityctl/survey/doctor.hpp"
#include "host/root.hpp"

#include <cstddef>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace affinityctl {

struct ReadMachine {
    survey::Examined seen;     ///< refers to the machine that it was read of
    bool lacks_memory = false; ///< the recording has no memory of processes
};

/// The names of interfaces of a policy of a request.
using NicsOf = std::function<std::vector<std::string>&(std::size_t policy)>;
/// Adds the interfaces that serve the processes of a request now, by their sockets, each name once.
void read_usage(const affinityd::host::Root& root, affinityd::accounting::NicUsage::Request request,
                const NicsOf& nics_of);

/// `status`: of the daemon, or null.
[[nodiscard]] ReadMachine read_machine(StillMachine& still, const affinityd::host::Root& root,
                                       const nlohmann::json& status);

} // namespace affinityctl
