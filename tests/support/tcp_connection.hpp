// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/fd.hpp"

#include <vector>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace affinityd::test {

/// Both ends of a connection over loopback.
struct TcpConnection {
    TcpConnection() {
        const host::Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof(address);
        auto* raw = reinterpret_cast<sockaddr*>(&address);
        EXPECT_EQ(::bind(listener.get(), raw, size), 0);
        EXPECT_EQ(::listen(listener.get(), 8), 0);
        EXPECT_EQ(::getsockname(listener.get(), raw, &size), 0);
        client = host::Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        EXPECT_EQ(::connect(client.get(), raw, size), 0);
        served = host::Fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
        EXPECT_TRUE(served);
    }
    /// The last process to close `served` waits for so long, or until `client` is closed.
    void let_served_linger(int seconds) const {
        const ::linger linger{.l_onoff = 1, .l_linger = seconds};
        EXPECT_EQ(::setsockopt(served.get(), SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
        const std::vector<char> bytes(1U << 20);
        while (::send(served.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
        } // until the peer takes no more
    }
    host::Fd client, served;
};

} // namespace affinityd::test
