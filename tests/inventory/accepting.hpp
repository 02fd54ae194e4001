// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/accept_sockets.hpp"
#include "inventory/lookup.hpp"
#include "support/forked.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace affinityd::inventory {
/// A listener of 127.0.0.1, with SO_REUSEPORT unless `is_alone`. `port` 0: any.
inline int listener(std::uint16_t port, bool is_alone = false) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int yes = is_alone ? 0 : 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(fd, 8), 0);
    return fd;
}

inline std::uint16_t port_of(int fd) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    EXPECT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
    return ntohs(address.sin_port);
}

inline int watch(const std::vector<int>& files) {
    const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{.events = EPOLLIN, .data = {}};
    for (const int fd : files)
        EXPECT_EQ(::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
    return epoll;
}

inline int watch(int listener) { return watch(std::vector{listener}); }

[[noreturn]] inline void wait_for_ever(int epoll) {
    epoll_event event{};
    while (true)
        ::epoll_wait(epoll, &event, 1, -1);
}

class Accepting : public testing::Test {
  protected:
    [[nodiscard]] TaskId id(int pid) const {
        const auto thread = read_thread(root, pid, pid);
        return thread && *thread ? (*thread)->id : TaskId{pid, 0};
    }
    /// Reads until `is_there`, for so many seconds at most.
    AcceptSockets read_until(int pid, const std::function<bool(const AcceptSockets&)>& is_there,
                             int seconds = 20) {
        AcceptSockets found;
        for (int i = 0; i < 100 * seconds; ++i) {
            found = reader.read(id(pid));
            if (is_there(found)) break;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return found;
    }
    host::Root root = *host::Root::open();
    AcceptReader reader{root};
    host::SubordinateIds persons;
};

} // namespace affinityd::inventory
