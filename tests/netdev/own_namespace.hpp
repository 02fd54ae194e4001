// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace affinityd::netdev {

/// Runs `body` in a child process with a network namespace and a /sys of its own; both end with the child,
/// whatever happens. `body` returns "" if all is well, else the fault.
[[nodiscard]] std::string in_own_namespace(const std::function<std::string()>& body);

/// Inside: a pair of virtual Ethernet interfaces with as many queues each way. "" or what went wrong.
[[nodiscard]] std::string add_veth(const std::string& name, const std::string& peer, unsigned queues);
[[nodiscard]] std::string remove_link(const std::string& name);
[[nodiscard]] std::string set_up(const std::string& name, bool up);
[[nodiscard]] std::string rename_link(const std::string& name, const std::string& to); ///< must be down
[[nodiscard]] std::string add_address(const std::string& name, const std::string& address);
[[nodiscard]] std::string set_gro(const std::string& name); ///< veth polls only with GRO or XDP
[[nodiscard]] std::string set_channels(const std::string& name, unsigned rx, unsigned tx);

} // namespace affinityd::netdev
