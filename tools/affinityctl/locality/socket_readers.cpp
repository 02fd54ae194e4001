// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/locality/socket_readers.hpp"

#include "base/text.hpp"
#include "inventory/numbered.hpp"

#include <charconv>
#include <string>

#include <sys/syscall.h>

namespace affinityctl {

namespace {

bool is_epoll_wait(long number) {
#ifdef SYS_epoll_wait
    if (number == SYS_epoll_wait) return true;
#endif
#ifdef SYS_epoll_pwait2
    if (number == SYS_epoll_pwait2) return true;
#endif
    return number == SYS_epoll_pwait;
}

bool is_read(long number) {
#ifdef SYS_recv
    if (number == SYS_recv) return true;
#endif
    return number == SYS_read || number == SYS_readv || number == SYS_recvfrom || number == SYS_recvmsg;
}

constexpr std::size_t most_threads = 512;

} // namespace

std::optional<WaitingCall> parse_syscall(std::string_view text) {
    const auto words = affinityd::split_words(affinityd::trim_text(text));
    if (words.size() < 2) return std::nullopt;
    const auto number = affinityd::parse_number<long>(words[0]);
    unsigned long long first = 0;
    const auto digits = words[1].starts_with("0x") ? words[1].substr(2) : std::string_view();
    const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), first, 16);
    if (!number || *number < 0 || fault != std::errc() || end != digits.data() + digits.size())
        return std::nullopt;
    return WaitingCall{*number, first <= 0x7fffffff ? static_cast<int>(first) : -1};
}

std::vector<int> parse_epoll_targets(std::string_view text) {
    std::vector<int> targets;
    for (const auto line : affinityd::split(text, '\n')) {
        const auto words = affinityd::split_words(line);
        if (words.size() < 2 || words[0] != "tfd:") continue;
        if (const auto target = affinityd::parse_number<int>(words[1]); target && *target >= 0)
            targets.push_back(*target);
    }
    return targets;
}

void SocketReaders::note_targets(int epoll, int tid) {
    const auto text = root_->proc().read(std::to_string(pid_) + "/fdinfo/" + std::to_string(epoll));
    if (!text || !*text) return;
    for (const int target : parse_epoll_targets(**text))
        readers_[target] = tid;
}

void SocketReaders::look() {
    const auto folder = std::to_string(pid_) + "/task";
    auto threads = affinityd::inventory::NumberedEntries::open(root_->proc(), folder);
    if (!threads) return;
    std::vector<int> tids;
    while (tids.size() < most_threads) {
        const auto tid = threads->next();
        if (!tid || !*tid) break;
        tids.push_back(**tid);
    }
    is_single_ = tids.size() < 2;
    if (is_single_) return;
    for (const int tid : tids) {
        const auto text = root_->proc().text(folder + "/" + std::to_string(tid) + "/syscall");
        const auto call = parse_syscall(text.value_or(""));
        if (!call || call->first < 0) continue;
        if (is_epoll_wait(call->number))
            note_targets(call->first, tid);
        else if (is_read(call->number))
            readers_[call->first] = tid;
    }
}

std::optional<int> SocketReaders::reader_of(int descriptor) const {
    if (is_single_) return pid_;
    const auto found = readers_.find(descriptor);
    return found == readers_.end() ? std::nullopt : std::optional(found->second);
}

} // namespace affinityctl
