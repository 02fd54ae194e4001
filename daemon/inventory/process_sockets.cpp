// SPDX-License-Identifier: Apache-2.0
#include "inventory/process_sockets.hpp"

#include "base/text.hpp"
#include "inventory/net_files.hpp"
#include "inventory/numbered.hpp"

#include <algorithm>
#include <array>

#include <unistd.h>

namespace affinityd::inventory {

namespace {

constexpr std::size_t namespace_file_limit = 256U << 10;

/// The number in "socket:[123]".
std::optional<std::uint64_t> socket_inode(std::string_view link) {
    constexpr std::string_view head = "socket:[";
    if (!link.starts_with(head) || !link.ends_with("]")) return std::nullopt;
    return parse_number<std::uint64_t>(link.substr(head.size(), link.size() - head.size() - 1));
}

} // namespace

Result<std::vector<LocalSocket>> read_namespace_listeners(const host::Root& root, int pid) {
    std::vector<LocalSocket> listeners;
    for (const auto& file : net_files) {
        const auto read = read_net_file(root, std::to_string(pid) + "/", file, namespace_file_limit,
                                        [&](const LocalSocket& socket) {
                                            if (socket.listens()) listeners.push_back(socket);
                                        });
        if (!read) return std::unexpected(read.error());
    }
    return listeners;
}

bool shares_network_namespace(const host::Root& root, int pid) {
    const auto own = root.proc().link("self/ns/net");
    const auto theirs = root.proc().link(std::to_string(pid) + "/ns/net");
    return !own || !theirs || *own == *theirs;
}

std::vector<std::uint16_t> foreign_listen_ports(const host::Root& root, int pid) {
    std::vector<std::uint16_t> ports;
    if (shares_network_namespace(root, pid)) return ports;
    const auto inodes = socket_inodes(root, pid).value_or(std::vector<std::uint64_t>{});
    if (inodes.empty()) return ports;
    for (const auto& socket : read_namespace_listeners(root, pid).value_or(std::vector<LocalSocket>{}))
        if (std::ranges::binary_search(inodes, socket.inode)) ports.push_back(socket.port);
    std::ranges::sort(ports);
    const auto rest = std::ranges::unique(ports);
    ports.erase(rest.begin(), rest.end());
    return ports;
}

Result<std::vector<std::uint64_t>> socket_inodes(const host::Root& root, int pid, std::size_t most) {
    std::vector<std::uint64_t> inodes;
    auto entries = NumberedEntries::open(root.proc(), std::to_string(pid) + "/fd");
    if (!entries) {
        if (host::means_absent(entries.error().code)) return inodes;
        return std::unexpected(entries.error());
    }
    std::array<char, 64> target{}; // what is longer is no socket
    for (std::size_t looked = 0; looked < most; ++looked) {
        const auto number = entries->next();
        if (!number) return std::unexpected(number.error());
        if (!*number) break;
        const auto length =
            ::readlinkat(entries->dir().fd(), std::to_string(**number).c_str(), target.data(), target.size());
        if (length <= 0) continue;
        if (const auto inode = socket_inode({target.data(), static_cast<std::size_t>(length)}))
            inodes.push_back(*inode);
    }
    std::ranges::sort(inodes);
    const auto rest = std::ranges::unique(inodes); // a duplicated descriptor is the same socket
    inodes.erase(rest.begin(), rest.end());
    return inodes;
}

} // namespace affinityd::inventory
