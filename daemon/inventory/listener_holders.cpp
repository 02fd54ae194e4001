// SPDX-License-Identifier: Apache-2.0
#include "inventory/listener_holders.hpp"

#include "host/avoided.hpp"
#include "inventory/descriptor_walk.hpp"
#include "inventory/name_space.hpp"
#include "inventory/numbered.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace affinityd::inventory {

namespace {

constexpr std::chrono::seconds between_lists{1}, longest_rest_after_walk{60};

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

std::optional<ListenerHolders::Holder> ListenerHolders::among(std::span<const int> pids, std::uint64_t inode,
                                                              std::atomic<int>& at, bool& is_whole) const {
    std::optional<Holder> found;
    auto left = most_links_of_family;
    for (const int pid : pids) {
        if (found || !root_) break;
        auto of_one = std::min(left, most_links);
        left -= of_one;
        at = pid;
        if (!host::is_process_avoided(pid)) {
            for_each_socket(*root_, pid, of_one, [&](int number, std::uint64_t its) {
                if (its == inode) found = Holder{pid, number};
                return !found;
            });
        }
        is_whole = is_whole && of_one > 0;
        left += of_one;
    }
    return found;
}

void ListenerHolders::list() {
    const auto now = Clock::now();
    if (!root_ || (listed_at_ != Clock::time_point{} && now - listed_at_ < between_lists)) return;
    listed_ = std::make_shared<const ListeningSockets>(ListeningSockets::read(*root_, ::getpid(), persons_));
    listed_at_ = Clock::now();
}

ListenerHolders::Listed ListenerHolders::is_listed(std::uint64_t inode) {
    const std::lock_guard lock(mutex_);
    list();
    if (listed_->has(inode)) return Listed::yes;
    return listed_->are_all() ? Listed::no : Listed::not_known;
}

bool ListenerHolders::are_here(std::span<const int> pids) const {
    const auto own = root_ ? name_space(*root_, "self", "net") : 0;
    return own != 0 && std::ranges::any_of(pids, [&](int pid) {
               return name_space(*root_, std::to_string(pid), "net") == own;
           });
}

ListenerHolders::Found ListenerHolders::walk(const ListeningSockets& listed, int& from,
                                             std::atomic<int>& at) const {
    Found found;
    std::vector<int> pids;
    auto processes = NumberedEntries::open(root_->proc(), "");
    while (processes) {
        const auto pid = processes->next();
        if (!pid || !*pid) break;
        if (from == 0 || **pid <= from) pids.push_back(**pid);
    }
    std::ranges::sort(pids, std::greater());
    auto left = most_links_anywhere;
    for (const int pid : pids) {
        from = pid;
        if (left == 0) return found;
        at = pid;
        if (host::is_process_avoided(pid)) continue;
        auto of_one = std::min(left, most_links);
        left -= of_one;
        for_each_socket(*root_, pid, of_one, [&](int number, std::uint64_t inode) {
            if (listed.has(inode)) found.try_emplace(inode, Holder{pid, number});
            return true;
        });
        left += of_one; // what it did not use
    }
    from = 0;
    return found;
}

std::optional<ListenerHolders::Holder> ListenerHolders::anywhere(std::uint64_t inode, std::atomic<int>& at) {
    std::unique_lock lock(mutex_);
    list();
    const auto listed = listed_;
    if (!root_ || !listed->has(inode)) return std::nullopt;
    const auto begun = Clock::now();
    if (!found_.contains(inode) && begun >= next_walk_) {
        next_walk_ = begun + longest_rest_after_walk; // this one may not come back
        int from = next_pid_;
        lock.unlock();
        auto found = walk(*listed, from, at);
        lock.lock();
        const auto now = Clock::now();
        next_walk_ =
            now + std::min<Clock::duration>(rest_after_walk * (now - begun), longest_rest_after_walk);
        next_pid_ = from;
        std::erase_if(found_, [&](const auto& one) { return !listed->has(one.first); });
        for (const auto& [its, holder] : found)
            found_.insert_or_assign(its, holder);
    }
    const auto found = found_.find(inode);
    return found == found_.end() ? std::nullopt : std::optional(found->second);
}

void ListenerHolders::forget(std::uint64_t inode) {
    const std::lock_guard lock(mutex_);
    found_.erase(inode);
}

} // namespace affinityd::inventory
