// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/locality/listeners.hpp"

#include "inventory/descriptors.hpp"
#include "inventory/process_files.hpp"
#include "inventory/sockets.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace affinityctl {

namespace inventory = affinityd::inventory;

namespace {
constexpr std::size_t most_processes = 64, most_descriptors = 65'536;
/// Network namespace, protocol, address, interface, port.
using ListenerPlace =
    std::tuple<std::uint64_t, inventory::Protocol, inventory::IpAddress, std::uint32_t, std::uint16_t>;
} // namespace

std::size_t listeners_at_one_port(const affinityd::host::Root& root, std::span<const int> pids) {
    std::map<std::uint64_t, std::vector<inventory::LocalSocket>> known; // by network namespace
    std::map<ListenerPlace, std::set<std::uint64_t>> listeners;
    for (const int pid : pids.first(std::min(pids.size(), most_processes))) {
        const auto process = std::to_string(pid);
        const auto space = affinityd::inventory::name_space(root, process, "net");
        const auto folder = root.proc().dir(process);
        const auto inodes =
            folder
                ? inventory::socket_inodes(*folder, most_descriptors).value_or(std::vector<std::uint64_t>())
                : std::vector<std::uint64_t>();
        if (space == 0 || inodes.empty()) continue;
        if (!known.contains(space))
            known[space] = inventory::read_namespace_listeners(root, process)
                               .value_or(std::vector<inventory::LocalSocket>());
        for (const auto& socket : known[space])
            if (std::ranges::binary_search(inodes, socket.inode))
                listeners[{space, socket.protocol, socket.local, socket.interface, socket.port}].insert(
                    socket.inode);
    }
    std::size_t most = 0;
    for (const auto& [place, inodes] : listeners)
        most = std::max(most, inodes.size());
    return most;
}

} // namespace affinityctl
