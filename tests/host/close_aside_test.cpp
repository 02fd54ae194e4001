// SPDX-License-Identifier: Apache-2.0
#include "host/close_aside.hpp"

#include <array>
#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace affinityd::host {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

/// A peer may send any number of them.
TEST(CloseAsideTest, ThreadsCloseOneAfterAnother) {
    std::set<std::string> threads;
    CloseAside aside;
    for (int i = 0; i < 1000; ++i) {
        aside.close(Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)));
        for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task"))
            threads.insert(entry.path().filename());
        while (aside.waiting() >= 4)
            ::usleep(100);
    }
    EXPECT_LE(threads.size(), 20U) << "one for many, and others when this one has no CPU";
    const auto begun = steady_clock::now();
    while (aside.waiting() > 0 && steady_clock::now() - begun < seconds(30))
        ::usleep(1000);
    EXPECT_EQ(aside.waiting(), 0);
}

TEST(CloseAsideTest, WhatIsLeftIsClosedWhenItIsGone) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    const Fd read_end(ends[0]);
    CloseAside().close(Fd(ends[1]));
    pollfd closed{.fd = read_end.get(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&closed, 1, 30'000), 1);
    EXPECT_NE(closed.revents & POLLHUP, 0);
}

} // namespace
} // namespace affinityd::host
