// SPDX-License-Identifier: Apache-2.0
#include "inventory/process_sockets.hpp"

#include "inventory/descriptor_walk.hpp"
#include "inventory/net_files.hpp"

#include <algorithm>

namespace affinityd::inventory {

namespace {

constexpr std::size_t namespace_file_limit = 256U << 10;

bool lives_in_this_namespace(const host::Root& root, const std::string& process) {
    const auto own = root.proc().link("self/ns/net");
    const auto theirs = root.proc().link(process + "/ns/net");
    return !own || !theirs || *own == *theirs;
}

} // namespace

Result<std::vector<LocalSocket>> read_namespace_listeners(const host::Root& root,
                                                          const std::string& process) {
    std::vector<LocalSocket> listeners;
    for (const auto& file : net_files) {
        const auto read =
            read_net_file(root, process + "/", file, namespace_file_limit, [&](const LocalSocket& socket) {
                if (socket.listens()) listeners.push_back(socket);
            });
        if (!read) return std::unexpected(read.error());
    }
    return listeners;
}

bool shares_network_namespace(const host::Root& root, int pid) {
    return lives_in_this_namespace(root, std::to_string(pid));
}

std::vector<std::uint16_t> foreign_listen_ports(const host::Root& root, const std::string& process,
                                                const std::vector<std::uint64_t>& inodes) {
    std::vector<std::uint16_t> ports;
    if (lives_in_this_namespace(root, process)) return ports;
    if (inodes.empty()) return ports;
    for (const auto& socket : read_namespace_listeners(root, process).value_or(std::vector<LocalSocket>{}))
        if (std::ranges::binary_search(inodes, socket.inode)) ports.push_back(socket.port);
    std::ranges::sort(ports);
    const auto rest = std::ranges::unique(ports);
    ports.erase(rest.begin(), rest.end());
    return ports;
}

Result<std::vector<std::uint64_t>> socket_inodes(const host::Root& root, int pid, std::size_t most) {
    const auto process = root.proc().dir(std::to_string(pid));
    auto walk =
        process ? DescriptorWalk::open(*process) : Result<DescriptorWalk>(std::unexpected(process.error()));
    if (!walk) {
        if (host::means_absent(walk.error().code)) return std::vector<std::uint64_t>{};
        return std::unexpected(walk.error());
    }
    if (const auto walked = walk->step(most); !walked) return std::unexpected(walked.error());
    return walk->take_inodes();
}

} // namespace affinityd::inventory
