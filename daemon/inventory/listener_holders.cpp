// SPDX-License-Identifier: Apache-2.0
#include "inventory/listener_holders.hpp"

#include "base/clock.hpp"
#include "base/text.hpp"
#include "host/avoided.hpp"
#include "inventory/descriptor_walk.hpp"
#include "inventory/lookup.hpp"
#include "inventory/name_space.hpp"
#include "inventory/numbered.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace affinityd::inventory {

namespace {

constexpr std::chrono::milliseconds longest_believed{50}; // a list of listeners
constexpr std::chrono::seconds longest_rest_after_walk{60};
constexpr std::size_t longest_text = 64U << 10;               // some 8,000 children
constexpr std::uint64_t of_lists = 0;                         // what root's have is their families'
constexpr std::uint64_t of_families = std::uint64_t{1} << 32; // above all users

/// What a search may still cost.
struct Allowance {
    std::size_t links;
    std::chrono::nanoseconds until; ///< CPU time of this thread
    [[nodiscard]] bool take_link() {
        if (links == 0) return false;
        if (--links % 64 == 0 && thread_time() >= until) links = 0;
        return true;
    }
};

/// Hands on its sockets, until `take` says false. At most ListenerHolders::most_links are read. False: there
/// may be more.
bool for_each_socket(const host::Root& root, int pid, Allowance& allowance,
                     const std::function<bool(int number, std::uint64_t inode)>& take) {
    auto entries = NumberedEntries::open(root.proc(), std::to_string(pid) + "/fd");
    if (!entries) return true;
    for (auto left = ListenerHolders::most_links; left > 0 && allowance.take_link(); --left) {
        const auto number = entries->next();
        if (!number || !*number) return true;
        if (const auto inode = socket_inode(entries->dir(), **number); inode && !take(**number, *inode))
            return true;
    }
    return false;
}

} // namespace

ListenerHolders::ListenerHolders(const host::Root& root) {
    if (auto own = host::Root::open(root.path())) root_.emplace(std::move(*own));
}

std::vector<int> ListenerHolders::family_of(int process, int parent, bool& is_whole) const {
    std::vector<int> family{process};
    if (parent <= 1 || !root_) return family;
    family.push_back(parent);
    const auto children = root_->proc().read(fmt::format("{0}/task/{0}/children", parent), longest_text);
    if (!children || !*children) { // kernels without CONFIG_PROC_CHILDREN; or the parent has ended
        is_whole = children && !read_parent(*root_, parent);
        return family;
    }
    for (const auto word : split_words(**children)) // the kernel lists the eldest first
        if (const auto pid = parse_number<int>(word); pid && *pid != process) family.push_back(*pid);
    if (const auto kept = most_children + 2; family.size() > kept) {
        family.erase(family.begin() + 2, family.end() - most_children);
        is_whole = false;
    }
    return family;
}

std::uint64_t ListenerHolders::payer_of(int process, int parent) {
    const auto own_family = of_families + static_cast<std::uint64_t>(parent > 1 ? parent : process);
    const auto its_parent = root_ ? read_parent(*root_, process) : std::nullopt;
    if (!root_ || (its_parent && *its_parent != parent)) return own_family;
    auto user = its_parent ? read_real_user(*root_, process) : std::nullopt;
    if (!user && parent > 1) user = read_real_user(*root_, parent);
    if (user.value_or(0) == 0) return own_family;
    const std::lock_guard lock(mutex_);
    return persons_.person(*user);
}

bool ListenerHolders::can_pay(std::uint64_t payer) {
    const std::lock_guard lock(mutex_);
    return credit_.has_any(payer, Clock::now());
}

void ListenerHolders::charge(std::uint64_t payer, std::chrono::nanoseconds used) {
    const std::lock_guard lock(mutex_);
    credit_.spend(payer, used, Clock::now());
}

std::optional<ListenerHolders::Holder> ListenerHolders::among(std::span<const int> pids, std::uint64_t inode,
                                                              host::InUse& at, bool& is_whole) {
    Found found;
    Allowance allowance{most_links_of_family, thread_time() + longest_of_family};
    for (const int pid : pids) {
        if (!root_ || found.contains(inode)) break;
        at.pid = pid;
        if (at.is_given_up) break;
        if (host::is_process_avoided(pid)) {
            is_whole = false;
            continue;
        }
        const bool is_all = for_each_socket(*root_, pid, allowance, [&](int number, std::uint64_t its) {
            found.try_emplace(its, Holder{pid, number});
            return its != inode;
        });
        is_whole = is_whole && is_all;
    }
    const auto its = found.find(inode);
    const auto holder = its == found.end() ? std::nullopt : std::optional(its->second);
    const std::lock_guard lock(mutex_);
    learn(found);
    return holder;
}

void ListenerHolders::learn(const Found& found) {
    std::erase_if(found_, [&](const auto& one) { return !listed_->has(one.first); });
    for (const auto& [inode, holder] : found)
        if (listed_->has(inode)) found_.insert_or_assign(inode, holder);
}

void ListenerHolders::list() {
    const auto begun = Clock::now();
    const bool is_late = listed_at_ == Clock::time_point{} || begun - listed_at_ > longest_believed;
    if (!root_ || !is_late || !credit_.has_any(of_lists, begun)) return;
    const auto before = thread_time();
    listed_ = std::make_shared<const ListeningSockets>(ListeningSockets::read(*root_, ::getpid(), persons_));
    listed_at_ = begun;
    credit_.spend(of_lists, thread_time() - before, Clock::now());
}

ListenerHolders::Listed ListenerHolders::is_listed(std::uint64_t inode) {
    const auto asked = Clock::now();
    const std::lock_guard lock(mutex_);
    list();
    if (listed_->has(inode)) return Listed::yes;
    return listed_->are_all() && asked - listed_at_ <= longest_believed ? Listed::no : Listed::not_known;
}

bool ListenerHolders::are_here(std::span<const int> pids) const {
    const auto own = root_ ? name_space(*root_, "self", "net") : 0;
    std::size_t here = 0;
    for (const int pid : pids) {
        const auto its = own == 0 ? 0 : name_space(*root_, std::to_string(pid), "net");
        if (its != 0 && its != own) return false;
        here += its == own ? 1 : 0;
    }
    return own != 0 && here > 0;
}

std::optional<ListenerHolders::Holder> ListenerHolders::known(std::uint64_t inode) {
    const std::lock_guard lock(mutex_);
    const auto found = found_.find(inode);
    return found == found_.end() ? std::nullopt : std::optional(found->second);
}

ListenerHolders::Found ListenerHolders::walk(const ListeningSockets& listed, int& from,
                                             host::InUse& at) const {
    Found found;
    std::vector<int> pids;
    auto processes = NumberedEntries::open(root_->proc(), "");
    while (processes) {
        const auto pid = processes->next();
        if (!pid || !*pid) break;
        if (from == 0 || **pid <= from) pids.push_back(**pid);
    }
    std::ranges::sort(pids, std::greater());
    Allowance allowance{most_links_anywhere, thread_time() + longest_anywhere};
    for (const int pid : pids) {
        from = pid;
        if (allowance.links == 0) return found;
        at.pid = pid;
        if (at.is_given_up) return found;
        if (host::is_process_avoided(pid)) continue;
        for_each_socket(*root_, pid, allowance, [&](int number, std::uint64_t inode) {
            if (listed.has(inode)) found.try_emplace(inode, Holder{pid, number});
            return true;
        });
    }
    from = 0;
    return found;
}

std::optional<ListenerHolders::Holder> ListenerHolders::anywhere(std::uint64_t inode, host::InUse& at) {
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
        learn(found);
    }
    const auto found = found_.find(inode);
    return found == found_.end() ? std::nullopt : std::optional(found->second);
}

void ListenerHolders::forget(std::uint64_t inode) {
    const std::lock_guard lock(mutex_);
    found_.erase(inode);
}

} // namespace affinityd::inventory
