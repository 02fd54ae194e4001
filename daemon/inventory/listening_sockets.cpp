// SPDX-License-Identifier: Apache-2.0
#include "inventory/listening_sockets.hpp"

#include "inventory/name_space.hpp"
#include "inventory/socket_dump.hpp"

#include <algorithm>
#include <string>

namespace affinityd::inventory {

namespace {

constexpr int most_tries = 3; // of a list that changed while it was read

} // namespace

void ListeningSockets::add(const LocalSocket& socket, host::SubordinateIds& persons) {
    if (!socket.listens() || known_.contains(socket.inode)) return;
    const auto user = persons.person(socket.user);
    if (auto& count = counts_[user]; count < most_of_user) {
        ++count;
    } else {
        crowded_.insert(user);
        return rest_.push_back(socket.inode);
    }
    const Address address{socket.local, socket.port, socket.interface};
    known_.emplace(socket.inode, Known{address, user});
    inodes_[address].push_back(socket.inode);
}

/// True: those are all of this family.
bool ListeningSockets::list(int family, host::SubordinateIds& persons) {
    for (int i = 0; i < most_tries; ++i) {
        auto dump = SocketDump::open(Protocol::tcp, family, Wanted::listeners);
        if (!dump) return false;
        auto step = Result<SocketDump::Step>(SocketDump::Step::more);
        std::size_t seen = 0;
        while (step && *step == SocketDump::Step::more && seen < most)
            step = dump->next([&](const LocalSocket& socket) {
                add(socket, persons);
                ++seen;
            });
        if (!step || *step != SocketDump::Step::interrupted) return step && *step == SocketDump::Step::end;
    }
    return false;
}

/// True: those are all of this file.
bool ListeningSockets::read_file(const host::Root& root, int pid, const NetFile& file,
                                 host::SubordinateIds& persons) {
    bool is_past_them = false;
    const auto whole =
        read_net_file(root, std::to_string(pid) + "/", file, longest, [&](const LocalSocket& socket) {
            is_past_them |= !socket.listens();
            add(socket, persons);
        });
    return whole && (*whole || is_past_them);
}

ListeningSockets ListeningSockets::read(const host::Root& root, int pid, host::SubordinateIds& persons) {
    ListeningSockets found;
    const auto space = name_space(root, std::to_string(pid), "net");
    const bool is_own = space != 0 && space == name_space(root, "self", "net");
    found.are_all_ = space != 0;
    for (const auto& file : net_files)
        if (file.protocol == Protocol::tcp) {
            const bool are_all =
                is_own ? found.list(file.family, persons) : found.read_file(root, pid, file, persons);
            found.are_all_ = found.are_all_ && are_all;
        }
    found.finish();
    return found;
}

ListeningSockets ListeningSockets::of(std::span<const LocalSocket> sockets) {
    ListeningSockets found;
    found.are_all_ = true;
    host::SubordinateIds nobody("");
    for (const auto& socket : sockets)
        found.add(socket, nobody);
    found.finish();
    return found;
}

void ListeningSockets::finish() {
    for (auto& [address, inodes] : inodes_)
        std::ranges::sort(inodes);
    std::ranges::sort(rest_);
}

bool ListeningSockets::has(std::uint64_t inode) const {
    return contains(inode) || std::ranges::binary_search(rest_, inode);
}

std::vector<std::uint64_t> ListeningSockets::at_address_of(std::uint64_t inode) const {
    const auto found = known_.find(inode);
    return found == known_.end() ? std::vector<std::uint64_t>() : inodes_.at(found->second.address);
}

std::optional<uid_t> ListeningSockets::user_of(std::uint64_t inode) const {
    const auto found = known_.find(inode);
    return found == known_.end() ? std::nullopt : std::optional(found->second.user);
}

void ListeningSockets::keep_only(const ListeningSockets& later) {
    if (!later.are_all_) return;
    for (auto& [address, inodes] : inodes_)
        std::erase_if(inodes, [&](std::uint64_t one) { return !later.contains(one); });
}

} // namespace affinityd::inventory
