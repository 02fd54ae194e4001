// SPDX-License-Identifier: Apache-2.0
#include "inventory/listener_holders.hpp"

#include "inventory/descriptor_walk.hpp"
#include "inventory/numbered.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include <unistd.h>

namespace affinityd::inventory {

namespace {

constexpr std::chrono::seconds between_lists{1};

/// Hands on its sockets, until `take` says false. `left`: links that may be read.
void for_each_socket(const host::Root& root, int pid, std::size_t& left,
                     const std::function<bool(int number, std::uint64_t inode)>& take) {
    auto entries = NumberedEntries::open(root.proc(), std::to_string(pid) + "/fd");
    if (!entries) return;
    for (; left > 0; --left) {
        const auto number = entries->next();
        if (!number || !*number) return;
        if (const auto inode = socket_inode(entries->dir(), **number); inode && !take(**number, *inode))
            return;
    }
}

} // namespace

ListenerHolders::ListenerHolders(const host::Root& root) {
    if (auto own = host::Root::open(root.path())) root_.emplace(std::move(*own));
}

std::optional<ListenerHolders::Holder> ListenerHolders::among(std::span<const int> pids,
                                                              std::uint64_t inode) const {
    std::optional<Holder> found;
    auto left = most_links;
    for (const int pid : pids) {
        if (found || !root_) break;
        for_each_socket(*root_, pid, left, [&](int number, std::uint64_t its) {
            if (its == inode) found = Holder{pid, number};
            return !found;
        });
    }
    return found;
}

void ListenerHolders::list() {
    const auto now = Clock::now();
    if (!root_ || (listed_at_ != Clock::time_point{} && now - listed_at_ < between_lists)) return;
    listed_ = ListeningSockets::read(*root_, ::getpid(), persons_);
    listed_at_ = Clock::now();
}

bool ListenerHolders::is_listed(std::uint64_t inode) {
    const std::lock_guard lock(mutex_);
    list();
    return listed_.contains(inode);
}

void ListenerHolders::walk() {
    found_.clear();
    walked_at_ = Clock::now();
    if (!root_) return;
    auto processes = NumberedEntries::open(root_->proc(), "");
    if (!processes) return;
    for (auto left = most_links_anywhere; left > 0;) {
        const auto pid = processes->next();
        if (!pid || !*pid) return;
        auto of_one = std::min(left, most_links);
        left -= of_one;
        for_each_socket(*root_, **pid, of_one, [&](int number, std::uint64_t inode) {
            if (listed_.contains(inode)) found_.try_emplace(inode, Holder{**pid, number});
            return true;
        });
        left += of_one; // what it did not use
    }
}

std::optional<ListenerHolders::Holder> ListenerHolders::anywhere(std::uint64_t inode) {
    const std::lock_guard lock(mutex_);
    list();
    if (!listed_.contains(inode)) return std::nullopt;
    auto found = found_.find(inode);
    if (found == found_.end() &&
        (walked_at_ == Clock::time_point{} || Clock::now() - walked_at_ >= between_walks)) {
        walk();
        found = found_.find(inode);
    }
    return found == found_.end() ? std::nullopt : std::optional(found->second);
}

} // namespace affinityd::inventory
