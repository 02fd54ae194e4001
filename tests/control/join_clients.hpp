// SPDX-License-Identifier: Apache-2.0
// Clients of the socket for joins, and a manager that notes what it was asked.
#pragma once

#include "control/join_wire.h"
#include "core/commands.hpp"
#include "host/fd.hpp"

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include <sys/socket.h>
#include <sys/un.h>

namespace affinityd::test {

struct FakeJoining final : core::Joining {
    std::vector<core::JoinRequest> asked;
    std::vector<bool> were_alive;
    core::JoinAnswer answer{.policy = "server", .slot = "io"};
    uid_t last_user = 4711;
    core::JoinAnswer ask(const core::JoinRequest& request) override {
        asked.push_back(request);
        were_alive.push_back(request.is_alive());
        asked.back().is_alive = {};
        return answer;
    }
    bool may_ask(uid_t user) override {
        last_user = user;
        return !is_spent;
    }
    void charge(uid_t, std::chrono::nanoseconds) override {}
    bool is_spent = false;
};

inline bool connect_join(const std::string& path, const host::Fd& fd) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    return ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

inline host::Fd join_client() {
    return host::Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/// -1: refused.
inline host::Fd connect_join(const std::string& path) {
    auto fd = join_client();
    if (!connect_join(path, fd)) fd.reset();
    return fd;
}

inline affinityd_join_request join_request(const char* slot = "io") {
    affinityd_join_request raw{};
    raw.magic = AFFINITYD_JOIN_MAGIC;
    raw.version = AFFINITYD_JOIN_VERSION;
    raw.wish = AFFINITYD_WISH_JOIN;
    raw.pid = raw.tid = ::getpid();
    raw.cpu = -1;
    std::strcpy(raw.slot, slot);
    return raw;
}

} // namespace affinityd::test
