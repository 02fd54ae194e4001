// SPDX-License-Identifier: Apache-2.0
#include "inventory/polled_files.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <ranges>

#include <sys/syscall.h>

namespace affinityd::inventory {

namespace {

std::optional<std::uint64_t> parse_hex(std::string_view text) {
    if (text.starts_with("0x")) text.remove_prefix(2);
    std::uint64_t number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
    if (text.empty() || status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return number;
}

std::optional<PolledFile> parse_tfd(std::string_view line) {
    // tfd:        8 events:       19 data:         ffffffff  pos:0 ino:1f3 sdev:8
    const auto words = split_words(line);
    if (words.size() < 2 || words[0] != "tfd:") return std::nullopt;
    const auto number = parse_number<int>(words[1]);
    const auto inode = std::ranges::find_if(words, [](auto word) { return word.starts_with("ino:"); });
    if (!number || inode == words.end()) return std::nullopt;
    const auto value = parse_hex(inode->substr(4));
    return value ? std::optional(PolledFile{*number, *value}) : std::nullopt;
}

bool is_epoll_wait(long call) {
    constexpr std::array calls{
#ifdef SYS_epoll_wait
        static_cast<long>(SYS_epoll_wait), // architectures since 2012 have only the next
#endif
        static_cast<long>(SYS_epoll_pwait), 441L}; // epoll_pwait2, the same everywhere; older headers lack it
    return std::ranges::find(calls, call) != calls.end();
}

bool is_accept(long call) {
#ifdef SYS_accept
    if (call == SYS_accept) return true;
#endif
    return call == SYS_accept4;
}

bool is_read(long call) {
#ifdef SYS_recv
    if (call == SYS_recv) return true;
#endif
    constexpr std::array<long, 4> calls{SYS_read, SYS_readv, SYS_recvfrom, SYS_recvmsg};
    return std::ranges::find(calls, call) != calls.end();
}

} // namespace

std::vector<PolledFile> parse_polled(std::string_view fdinfo) {
    std::vector<PolledFile> found;
    for (const auto line : split(fdinfo, '\n'))
        if (const auto file = parse_tfd(line)) found.push_back(*file);
    std::ranges::sort(found, {}, [](const PolledFile& file) { return std::pair(file.inode, file.number); });
    return found;
}

std::optional<WaitingCall> parse_waiting(std::string_view syscall) {
    const auto words = split_words(syscall);
    if (words.size() < 2) return std::nullopt; // "running"
    const auto call = parse_number<long>(words[0]);
    const auto number = parse_hex(words[1]);
    if (!call || !number || *number > std::numeric_limits<int>::max()) return std::nullopt;
    if (is_epoll_wait(*call)) return WaitingCall{WaitingCall::Kind::epoll, static_cast<int>(*number)};
    if (is_accept(*call)) return WaitingCall{WaitingCall::Kind::accept, static_cast<int>(*number)};
    if (is_read(*call)) return WaitingCall{WaitingCall::Kind::read, static_cast<int>(*number)};
    return std::nullopt;
}

} // namespace affinityd::inventory
