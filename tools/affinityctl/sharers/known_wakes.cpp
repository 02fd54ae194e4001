// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/sharers/known_wakes.hpp"

#include "host/fd.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

namespace affinityctl {

namespace {

using affinityd::host::Fd;

struct WakePipe {
    Fd read, write;
};

affinityd::Result<WakePipe> make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return affinityd::fail("cannot make a pipe", {}, errno);
    return WakePipe{Fd(ends[0]), Fd(ends[1])};
}

/// Both return false when the other end is closed.
bool await_byte(const Fd& from) {
    char byte = 0;
    return ::read(from.get(), &byte, 1) == 1;
}
bool send_byte(const Fd& to) { return ::write(to.get(), "", 1) == 1; }

} // namespace

affinityd::Result<KnownWakes> make_known_wakes() {
    auto there = make_pipe();
    if (!there) return std::unexpected(there.error());
    auto back = make_pipe();
    if (!back) return std::unexpected(back.error());
    std::atomic<int> tid = 0;
    try {
        std::thread other([&] {
            tid = ::gettid();
            while (await_byte(there->read) && send_byte(back->write)) {
            }
            for (int i = 0; i < KnownWakes::by_timer; ++i)
                std::this_thread::sleep_for(std::chrono::microseconds(200));
        });
        bool is_open = true;
        for (int i = 0; i < KnownWakes::by_task / 2 && is_open; ++i)
            is_open = send_byte(there->write) && await_byte(back->read);
        there->write.reset();
        other.join();
    } catch (const std::system_error& error) {
        return affinityd::fail("cannot make a thread", {}, error.code().value());
    }
    return KnownWakes{tid};
}

} // namespace affinityctl
