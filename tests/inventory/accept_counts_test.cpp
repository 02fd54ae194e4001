// SPDX-License-Identifier: Apache-2.0
// How many connections came to whom, on the real kernel, with children of the test's own only.
#include "accepting.hpp"
#include "host/fd.hpp"

#include <array>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <sys/resource.h>

namespace affinityd::inventory {
namespace {

/// Takes what comes to these listeners, and keeps it; at the first connection, also what comes to `late`.
[[noreturn]] void serve(const std::vector<int>& listeners, int late = -1) {
    const int epoll = watch(listeners);
    while (true) {
        epoll_event event{};
        ::epoll_wait(epoll, &event, 1, -1);
        for (const int one : listeners) {
            epoll_event also{.events = EPOLLIN | EPOLLRDHUP, .data = {}};
            const int taken = ::accept4(one, nullptr, nullptr, SOCK_NONBLOCK);
            if (taken < 0) continue;
            also.data.fd = taken;
            ::epoll_ctl(epoll, EPOLL_CTL_ADD, taken, &also);
            if (late >= 0) ::epoll_ctl(epoll, EPOLL_CTL_ADD, std::exchange(late, -1), &also);
        }
        if (event.data.fd > 0 && (event.events & EPOLLRDHUP) != 0) ::close(event.data.fd);
    }
}

/// Does not wait where nothing has come, so that a worker has several.
int impatient(int listener) {
    ::fcntl(listener, F_SETFL, O_NONBLOCK);
    return listener;
}

/// Connections to a port of 127.0.0.1.
class Clients {
  public:
    Clients(std::uint16_t port, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            host::Fd one(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
            sockaddr_in address{};
            address.sin_family = AF_INET;
            address.sin_port = htons(port);
            address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            EXPECT_EQ(::connect(one.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
            all_.push_back(std::move(one));
        }
    }

  private:
    std::vector<host::Fd> all_;
};

class Counting : public Accepting {
  protected:
    /// What is counted of each listener, by its port, until there are so many in all, and for a moment
    /// longer.
    std::map<std::uint16_t, std::size_t> counted(int pid, std::size_t count, AcceptReader& by) {
        std::map<std::uint16_t, std::size_t> sums;
        std::size_t all = 0;
        for (int i = 0, longer = 0; i < 500 && longer < 5; ++i) {
            for (const auto& socket : by.read(id(pid)).sockets) {
                sums[socket.port] += socket.accepted.value_or(0);
                all += socket.accepted.value_or(0);
            }
            if (all >= count) ++longer;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return sums;
    }
    void wait_until_found(int pid, std::size_t listeners) {
        EXPECT_EQ(
            read_until(pid, [&](const auto& one) { return one.sockets.size() == listeners; }).sockets.size(),
            listeners);
    }
};

/// A process with several addresses, whose threads have a listener of each: HAProxy does that.
TEST_F(Counting, WhatCameToEachThreadIsCounted) {
    const std::array<int, 4> listeners{impatient(listener(0)), impatient(listener(0)), impatient(listener(0)),
                                       impatient(listener(0))};
    const Forked child([&] {
        std::thread([&] { serve({listeners[0], listeners[1]}); }).detach();
        serve({listeners[2], listeners[3]});
    });
    const auto port = [&](std::size_t which) { return port_of(listeners[which]); };
    const Clients earlier(port(0), 5);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    wait_until_found(child.pid(), 4);
    EXPECT_EQ(counted(child.pid(), 0, reader),
              (std::map<std::uint16_t, std::size_t>{{port(0), 0}, {port(1), 0}, {port(2), 0}, {port(3), 0}}))
        << "what was there before does not count";
    const auto open_files = [&] {
        const auto folder = "/proc/" + std::to_string(child.pid()) + "/fd";
        return std::distance(std::filesystem::directory_iterator(folder), {});
    };
    const auto before = open_files();
    const Clients later(port(1), 2), others(port(3), 4);
    for (int i = 0; i < 2000 && open_files() < before + 6; ++i) // else all listeners get what has no port yet
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(counted(child.pid(), 6, reader),
              (std::map<std::uint16_t, std::size_t>{{port(0), 0}, {port(1), 2}, {port(2), 0}, {port(3), 4}}))
        << "one port's connections say nothing of another's";
    for (const int fd : listeners)
        ::close(fd);
}

TEST_F(Counting, ConnectionsThatTakeThePlaceOfOthersCount) {
    const int mine = impatient(listener(0)), late = listener(0);
    const auto port = port_of(mine);
    const Forked child([&] { serve({mine}, late); });
    std::optional<Clients> first(std::in_place, port, 6);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    wait_until_found(child.pid(), 2);
    EXPECT_EQ(counted(child.pid(), 0, reader)[port], 0U);
    first.reset();
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    const Clients second(port, 6);
    std::this_thread::sleep_for(std::chrono::milliseconds(200)); // no look in between sees fewer
    EXPECT_EQ(counted(child.pid(), 12, reader)[port], 6U) << "as many are open as before";
    ::close(mine);
    ::close(late);
}

TEST_F(Counting, AListenerThatIsAddedIsNoConnection) {
    const int mine = impatient(listener(0)), late = listener(0);
    const auto port = port_of(mine);
    const Forked child([&] { serve({mine}, late); });
    wait_until_found(child.pid(), 1);
    const Clients clients(port, 3);
    EXPECT_EQ(counted(child.pid(), 3, reader)[port], 3U);
    ::close(mine);
    ::close(late);
}

/// nginx with `listen 443 reuseport` and `listen 80`: who takes what comes to port 80 is chance.
TEST_F(Counting, WhatComesToAListenerThatWorkersShareCountsForNoOther) {
    const int mine = impatient(listener(0)), shared = impatient(listener(0, true));
    const auto port = port_of(mine);
    const Forked child([&] { serve({mine, shared}); });
    wait_until_found(child.pid(), 2);
    std::size_t own = 0;
    for (int i = 0; i < 3; ++i) {
        const Clients many(port_of(shared), 6);
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        const auto sums = counted(child.pid(), 6, reader);
        own += sums.at(port);
        EXPECT_EQ(sums.at(port_of(shared)), 6U);
    }
    EXPECT_EQ(own, 0U);
    const Clients few(port, 2);
    EXPECT_EQ(counted(child.pid(), 2, reader)[port], 2U);
    const Clients rest(port_of(shared), 40);
    std::size_t known = 0, hits = 0;
    for (int i = 0; i < 500 && known < 40; ++i) {
        auto found = reader.read(id(child.pid()));
        known += found.samples[port].known;
        hits += found.samples[port].hits;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    // Each is asked once; one that does not answer in time, on a busy machine, stays unknown.
    EXPECT_GE(known, 20U);
    EXPECT_LE(known, 40U);
    EXPECT_EQ(hits, 0U);
    ::close(mine);
    ::close(shared);
}

/// Of thousands of connections, the descriptors of some are looked at: these are asked, and stand for all.
TEST_F(Counting, ThoseWhosePortIsKnownStandForTheOthers) {
    constexpr int last_filler = static_cast<int>(AcceptReader::most_descriptors) - 20;
    constexpr std::size_t come = 300;
    const int mine = impatient(listener(0)), other = impatient(listener(0));
    ::listen(mine, static_cast<int>(come));
    const auto port = port_of(mine);
    const Forked child([&] {
        rlimit limit{};
        ::getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = limit.rlim_max;
        ::setrlimit(RLIMIT_NOFILE, &limit);
        while (::dup(STDERR_FILENO) < last_filler) {
        }
        serve({mine, other}); // its epoll has the next one, connections those after it
    });
    EXPECT_EQ(read_until(child.pid(), [](const auto& one) { return one.sockets.size() == 2; }).is_cut, false);
    const Clients clients(port, come);
    std::size_t accepted = 0, known = 0, hits = 0;
    for (int i = 0; i < 500 && accepted < come; ++i) {
        auto found = reader.read(id(child.pid()));
        for (const auto& socket : found.sockets)
            if (socket.port == port) accepted += socket.accepted.value_or(0);
        known += found.samples[port].known;
        hits += found.samples[port].hits;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(accepted, come);
    constexpr std::size_t can_be_asked = AcceptReader::most_descriptors - last_filler - 2;
    EXPECT_LE(known, can_be_asked);
    EXPECT_GE(known, can_be_asked * 2 / 3); // on a busy machine some do not answer in time
    EXPECT_EQ(hits, known);
    EXPECT_TRUE(reader.read(id(child.pid())).is_cut);
    ::close(mine);
    ::close(other);
}

/// A proxy whose worker has a client that asks a lot: it connects to others, while what it accepts is fair.
TEST_F(Counting, WhatAWorkerConnectsToItselfDoesNotCount) {
    const int mine = impatient(listener(0)), elsewhere = listener(0);
    const auto port = port_of(mine), far = port_of(elsewhere);
    ::listen(elsewhere, 64);
    const Forked child([&] {
        ::close(elsewhere);
        const int epoll = watch(mine);
        while (true) {
            epoll_event event{};
            ::epoll_wait(epoll, &event, 1, -1);
            const int taken = ::accept4(mine, nullptr, nullptr, SOCK_NONBLOCK);
            if (taken < 0) continue;
            ::epoll_ctl(epoll, EPOLL_CTL_ADD, taken, &event);
            for (int i = 0; i < 10; ++i) {
                sockaddr_in address{};
                address.sin_family = AF_INET;
                address.sin_port = htons(far);
                address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
                const int own = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
                epoll_event answer{.events = EPOLLIN, .data = {}};
                if (::connect(own, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
                    ::epoll_ctl(epoll, EPOLL_CTL_ADD, own, &answer);
            }
        }
    });
    wait_until_found(child.pid(), 1);
    const Clients clients(port, 3);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_EQ(counted(child.pid(), 3, reader)[port], 3U);
    ::close(mine);
    ::close(elsewhere);
}

TEST_F(Counting, WhatIsTooMuchToRememberIsCountedByNumber) {
    AcceptReader forgetful(root, 3);
    const int mine = impatient(listener(0));
    const auto port = port_of(mine);
    const Forked child([&] { serve({mine}); });
    wait_until_found(child.pid(), 1);
    EXPECT_EQ(counted(child.pid(), 0, forgetful)[port], 0U);
    const Clients first(port, 5);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    EXPECT_EQ(counted(child.pid(), 5, forgetful)[port], 5U) << "what was there before is remembered";
    const Clients second(port, 2);
    EXPECT_EQ(counted(child.pid(), 2, forgetful)[port], 2U);
    ::close(mine);
}

} // namespace
} // namespace affinityd::inventory
