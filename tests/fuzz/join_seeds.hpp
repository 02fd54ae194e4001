// SPDX-License-Identifier: Apache-2.0
// Packets for the socket that is open to all users, and what must hold of whatever comes there: for the
// fuzzer and for an ordinary test.
#pragma once

#include "control/joins.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace affinityd::fuzz {

struct JoinSeed {
    std::string what;
    int fault = 0; ///< with which it is refused; 0: it is taken
    std::vector<std::byte> bytes{};
};

inline std::vector<JoinSeed> join_seeds() {
    std::vector<JoinSeed> seeds;
    const auto add = [&](const char* what, int fault, std::uint16_t wish, std::int32_t cpu, const char* slot,
                         std::size_t size = sizeof(affinityd_join_request)) {
        affinityd_join_request raw{};
        raw.magic = AFFINITYD_JOIN_MAGIC;
        raw.version = AFFINITYD_JOIN_VERSION;
        raw.wish = wish;
        raw.pid = raw.tid = 4711;
        raw.cpu = cpu;
        std::strncpy(raw.slot, slot, sizeof raw.slot - 1);
        JoinSeed seed{what, fault};
        seed.bytes.resize(size);
        if (size > 0) std::memcpy(seed.bytes.data(), &raw, std::min(size, sizeof raw));
        seeds.push_back(std::move(seed));
    };
    add("join", 0, AFFINITYD_WISH_JOIN, -1, "io");
    add("join, the longest name", 0, AFFINITYD_WISH_JOIN, -1, "abcdefghijklmnopqrstuvwxyz.-_01");
    add("serve", 0, AFFINITYD_WISH_SERVE, 3, "");
    add("leave", 0, AFFINITYD_WISH_LEAVE, -1, "");
    add("where", 0, AFFINITYD_WISH_WHERE, -1, "");
    add("nothing", -EBADMSG, 0, 0, "", 0);
    add("cut short", -EBADMSG, AFFINITYD_WISH_JOIN, -1, "io", 63);
    add("too long", -EBADMSG, AFFINITYD_WISH_JOIN, -1, "io", 128);
    add("no wish", -ENOSYS, 0, -1, "");
    add("a slot with a line end", -EINVAL, AFFINITYD_WISH_JOIN, -1, "i\no");
    add("a CPU below 0", -EINVAL, AFFINITYD_WISH_SERVE, -1, "");
    return seeds;
}

/// Ends the program if the reader of packets breaks what its header says.
inline void check_join(std::span<const std::byte> packet) {
    const auto parsed = control::parse_join(packet);
    if (!parsed) {
        if (parsed.error() >= 0) std::abort();
        return;
    }
    using Wish = core::JoinRequest::Wish;
    if (parsed->pid != 0 || parsed->is_alive || parsed->own_pid <= 0 || parsed->tid <= 0) std::abort();
    if ((parsed->wish == Wish::join) == parsed->slot.empty() || parsed->slot.size() > 31) std::abort();
    const auto is_bad = [](char c) { return c <= 0x20 || c >= 0x7f; };
    if (std::ranges::any_of(parsed->slot, is_bad)) std::abort();
    if (parsed->wish != Wish::serve && parsed->cpu != 0) std::abort();
    const auto reply = control::reply_to({.policy = parsed->slot + parsed->slot, .slot = parsed->slot});
    if (reply.slot != parsed->slot || reply.status != 1) std::abort();
}

} // namespace affinityd::fuzz
