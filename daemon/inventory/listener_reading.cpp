// SPDX-License-Identifier: Apache-2.0
#include "inventory/listener_reading.hpp"

#include "inventory/net_files.hpp"
#include "inventory/socket_dump.hpp"

#include <algorithm>
#include <cerrno>

namespace affinityd::inventory {

namespace {

constexpr std::size_t net_file_limit = 64U << 20;

using Take = std::function<void(const LocalSocket&)>;

/// One attempt.
Result<SocketDump::Step> read_once(const NetFile& list, const PortRanges& ports, const Take& take,
                                   const std::function<bool()>& is_over) {
    auto dump = SocketDump::open(list.protocol, list.family, Wanted::listeners, ports);
    if (!dump) return std::unexpected(dump.error());
    while (true) {
        const auto step = dump->next(take);
        if (!step || *step != SocketDump::Step::more) return step;
        if (is_over()) return fail("the reading is over", list.name, ECANCELED);
    }
}

bool holds(const PortRanges& ports, std::uint16_t port) {
    const auto after = std::ranges::upper_bound(ports, port, {}, &PortRanges::value_type::first);
    return after != ports.begin() && port <= std::prev(after)->second;
}

} // namespace

Result<Listeners> read_listeners(const host::Root& root, const PortRanges& ports, std::size_t most,
                                 const std::function<bool()>& is_over) {
    const auto wanted = few_ranges(ports, ports.size()); // apart from each other, as holds() needs them
    Listeners found;
    const Take take = [&](const LocalSocket& socket) {
        if (socket.inode == 0 || !socket.listens() || !holds(wanted, socket.port)) return;
        found.is_truncated = found.sockets.size() >= most;
        if (!found.is_truncated) found.sockets.push_back({socket.inode, socket.port});
    };
    for (const auto& list : net_files) {
        const auto before = found.sockets.size();
        auto step = Result<SocketDump::Step>(SocketDump::Step::interrupted);
        for (int i = 0; step && *step == SocketDump::Step::interrupted; ++i) {
            if (i == host::most_attempts)
                return fail("the list of sockets changed in every attempt to read it", list.name, EAGAIN);
            found.sockets.resize(before);
            step = read_once(list, ports, take, is_over);
        }
        if (!step) return std::unexpected(step.error());
        if (*step != SocketDump::Step::refused) continue;
        found.sockets.resize(before);
        if (const auto read = read_net_file(root, "", list, net_file_limit, take); !read)
            return std::unexpected(read.error());
    }
    std::ranges::sort(found.sockets);
    return found;
}

} // namespace affinityd::inventory
