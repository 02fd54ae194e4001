// SPDX-License-Identifier: Apache-2.0
#include "inventory/waits.hpp"

#include "base/text.hpp"
#include "inventory/descriptors.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include <sys/syscall.h>

namespace affinityd::inventory {

namespace {

constexpr std::size_t first_descriptors = 1024, first_threads = 256, most_of_sets = 256U << 10;

bool waits_on_set(long call) {
#ifdef SYS_epoll_wait
    if (call == SYS_epoll_wait) return true;
#endif
    return call == SYS_epoll_pwait || call == SYS_epoll_pwait2;
}

bool accepts(long call) {
#ifdef SYS_accept
    if (call == SYS_accept) return true;
#endif
    return call == SYS_accept4;
}

bool polls(long call) {
#ifdef SYS_poll
    if (call == SYS_poll || call == SYS_select) return true;
#endif
    return call == SYS_ppoll || call == SYS_pselect6;
}

std::uint64_t number_of(std::string_view text, int base) {
    std::uint64_t number = 0;
    const auto end = text.data() + text.size();
    return std::from_chars(text.data(), end, number, base).ptr == end ? number : 0;
}

using Sets = std::map<int, std::set<std::uint64_t>>; ///< descriptor of an epoll set -> listeners in it

/// The listeners in one epoll set; `left`: bytes that may still be read, of all sets of the process.
std::set<std::uint64_t> members_of(const host::Dir& process, int set, const std::set<std::uint64_t>& wanted,
                                   const std::map<int, std::uint64_t>& open, std::size_t& left) {
    std::set<std::uint64_t> found;
    if (left == 0) return found;
    const auto text = process.read("fdinfo/" + std::to_string(set), left);
    if (!text || !*text) return found;
    left -= std::min(left, (*text)->size());
    for (const auto& member : parse_epoll_members(**text)) {
        const auto known = open.find(member.descriptor);
        const auto inode = member.inode != 0 ? member.inode : known == open.end() ? 0 : known->second;
        if (wanted.contains(inode)) found.insert(inode);
    }
    return found;
}

/// Listeners on which a thread waits in some call.
void add_waits(int thread, const WaitingCall& call, const Sets& sets,
               const std::map<int, std::uint64_t>& open, ListenerUse& use) {
    const auto first = static_cast<int>(call.first);
    if (const auto set = sets.find(first); waits_on_set(call.number) && set != sets.end())
        for (const auto inode : set->second)
            use.waits.push_back({thread, inode});
    if (const auto listener = open.find(first); accepts(call.number) && listener != open.end())
        use.waits.push_back({thread, listener->second});
}

} // namespace

std::vector<EpollMember> parse_epoll_members(std::string_view text) {
    std::vector<EpollMember> found;
    for (std::size_t end = 0; !text.empty(); text.remove_prefix(std::min(end, text.size() - 1) + 1)) {
        end = text.find('\n');
        const auto words =
            split_words(text.substr(0, end)); // tfd: 7 events: 19 data: 7 pos:0 ino:1f2e sdev:8
        if (words.size() < 2 || words[0] != "tfd:") continue;
        const auto descriptor = parse_number<int>(words[1]);
        if (!descriptor) continue;
        const auto inode =
            std::ranges::find_if(words, [](const auto word) { return word.starts_with("ino:"); });
        found.push_back({*descriptor, inode == words.end() ? 0 : number_of(inode->substr(4), 16)});
    }
    return found;
}

WaitingCall parse_waiting_call(std::string_view text) {
    const auto words = split_words(text);
    const auto number = words.size() < 2 ? std::nullopt : parse_number<long>(words[0]);
    if (!number || !words[1].starts_with("0x")) return {};
    return {*number, number_of(words[1].substr(2), 16)};
}

Result<ListenerUse> read_listener_use(const host::Root& root, int pid,
                                      const std::set<std::uint64_t>& listeners) {
    ListenerUse use;
    const auto process = root.proc().dir(std::to_string(pid));
    if (!process) return std::unexpected(process.error());
    auto entries = NumberedEntries::open(*process, "fd");
    if (!entries) return std::unexpected(entries.error());
    std::map<int, std::uint64_t> open;
    std::vector<int> found_sets;
    for (std::size_t looked = 0; looked < first_descriptors; ++looked) {
        const auto number = entries->next();
        if (!number) return std::unexpected(number.error());
        if (!*number) break;
        const auto target = descriptor_target(entries->dir(), **number);
        if (target == "anon_inode:[eventpoll]") found_sets.push_back(**number);
        const auto inode = inode_of_socket(target);
        if (inode && listeners.contains(*inode)) open[**number] = *inode, use.held[*inode] = **number;
    }
    if (use.held.empty()) return use;
    Sets sets;
    std::size_t left = most_of_sets;
    for (const int set : found_sets)
        if (auto members = members_of(*process, set, listeners, open, left); !members.empty())
            sets.emplace(set, std::move(members));
    auto threads = NumberedEntries::open(*process, "task");
    if (!threads) return std::unexpected(threads.error());
    std::vector<int> tids;
    while (tids.size() < first_threads) {
        const auto tid = threads->next();
        if (!tid || !*tid) break;
        tids.push_back(**tid);
    }
    const auto call_of = [&](int tid) {
        return parse_waiting_call(process->text("task/" + std::to_string(tid) + "/syscall").value_or(""));
    };
    if (tids.size() > 1) {
        for (const int tid : tids)
            add_waits(tid, call_of(tid), sets, open, use);
        return use;
    }
    std::set<std::uint64_t> in_sets;
    for (const auto& [set, members] : sets)
        in_sets.insert(members.begin(), members.end());
    for (const auto inode : in_sets)
        use.waits.push_back({pid, inode});
    const auto call = call_of(pid);
    if (accepts(call.number)) add_waits(pid, call, {}, open, use);
    for (const auto& [inode, descriptor] : use.held)
        if (polls(call.number) && !in_sets.contains(inode)) use.waits.push_back({pid, inode, false});
    return use;
}

bool holds_socket(const host::Root& root, int pid, int descriptor, std::uint64_t inode) {
    const auto target = root.proc().link(std::to_string(pid) + "/fd/" + std::to_string(descriptor));
    return target && inode_of_socket(*target) == inode;
}

} // namespace affinityd::inventory
