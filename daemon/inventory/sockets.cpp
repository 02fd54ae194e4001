// SPDX-License-Identifier: Apache-2.0
#include "inventory/sockets.hpp"

#include "base/text.hpp"
#include "inventory/numbered.hpp"
#include "inventory/socket_dump.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

namespace affinityd::inventory {

namespace {

constexpr std::size_t net_file_limit = 64U << 20;

struct NetFile {
    const char* name;
    Protocol protocol;
};
constexpr std::array<NetFile, 4> net_files{{{"net/tcp", Protocol::tcp},
                                            {"net/tcp6", Protocol::tcp},
                                            {"net/udp", Protocol::udp},
                                            {"net/udp6", Protocol::udp}}};

void read_net_files(const host::Root& root, const std::string& folder, Wanted wanted, std::size_t most,
                    SocketList& list) {
    for (const auto& file : net_files) {
        const auto text = root.proc().read(folder + file.name, net_file_limit);
        if (!text || !*text) continue;
        const std::size_t end = list.sockets.size() + most;
        for (const auto line : split(**text, '\n')) {
            auto socket = parse_net_line(line, file.protocol);
            if (!socket || socket->state == SocketState::other) continue;
            if (wanted == Wanted::listeners && !socket->listens()) continue;
            if (list.sockets.size() >= end) {
                list.truncated = true;
                break;
            }
            list.sockets.push_back(std::move(*socket));
        }
    }
}

/// The number in "socket:[123]".
std::optional<std::uint64_t> socket_inode(std::string_view link) {
    constexpr std::string_view head = "socket:[";
    if (!link.starts_with(head) || !link.ends_with("]")) return std::nullopt;
    return parse_number<std::uint64_t>(link.substr(head.size(), link.size() - head.size() - 1));
}

} // namespace

SocketList read_sockets(const host::Root& root, Wanted wanted, std::size_t most) {
    SocketList list;
    if (!root.is_live()) {
        read_net_files(root, "", wanted, most, list);
        return list;
    }
    bool served = true;
    for (const auto protocol : {Protocol::tcp, Protocol::udp})
        for (const int family : {AF_INET, AF_INET6})
            served = dump_sockets(protocol, family, wanted, most, list) && served;
    if (!served && !list.truncated) {
        list = {};
        read_net_files(root, "", wanted, most, list);
    }
    return list;
}

SocketList read_sockets_of_namespace(const host::Root& root, int pid) {
    SocketList list;
    read_net_files(root, std::to_string(pid) + "/", Wanted::listeners, most_sockets, list);
    return list;
}

bool shares_network_namespace(const host::Root& root, int pid) {
    const auto own = root.proc().link("self/ns/net");
    const auto theirs = root.proc().link(std::to_string(pid) + "/ns/net");
    return !own || !theirs || *own == *theirs;
}

std::vector<std::uint64_t> socket_inodes(const host::Root& root, int pid, std::size_t most) {
    std::vector<std::uint64_t> inodes;
    auto entries = NumberedEntries::open(root.proc(), std::to_string(pid) + "/fd");
    if (!entries) return inodes;
    std::array<char, 64> target{}; // what is longer is no socket
    for (std::size_t looked = 0; looked < most; ++looked) {
        const auto number = entries->next().value_or(std::nullopt);
        if (!number) break;
        const auto length =
            ::readlinkat(entries->dir().fd(), std::to_string(*number).c_str(), target.data(), target.size());
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
