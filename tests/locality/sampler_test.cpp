// SPDX-License-Identifier: Apache-2.0
// Sockets of another process: where their packets arrive, who reads them, and that nobody notices.
#include "host/avoided.hpp"
#include "host/foreign_socket.hpp"
#include "locality/sampler.hpp"
#include "locality/sampling.hpp"
#include "support/forked.hpp"
#include "support/held_socket.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::locality {
namespace {

using host::Fd;
using host::Root;
using Clock = Sampler::Clock;

bool always() { return true; }

/// A child that accepts connections on one CPU and sends back what it reads, until it is told to go; this
/// process is its client.
class Served : public testing::Test {
  protected:
    static constexpr unsigned cpu = 0;

    void SetUp() override {
        auto root = Root::open();
        ASSERT_TRUE(root);
        root_.emplace(std::move(*root));
        const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        auto* raw = reinterpret_cast<sockaddr*>(&address_);
        address_.sin_family = AF_INET;
        address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof(address_);
        ASSERT_EQ(::bind(listener.get(), raw, size), 0);
        ASSERT_EQ(::listen(listener.get(), 1024), 0);
        ASSERT_EQ(::getsockname(listener.get(), raw, &size), 0);
        child_ = ::fork();
        if (child_ == 0) serve(listener.get());
    }
    void TearDown() override {
        clients_.clear();
        ::kill(child_, SIGKILL);
        ::waitpid(child_, nullptr, 0);
    }
    [[noreturn]] static void serve(int listener) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        ::sched_setaffinity(0, sizeof(one), &one);
        const int epoll = ::epoll_create1(0);
        epoll_event event{.events = EPOLLIN, .data = {.fd = listener}};
        ::epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
        while (::epoll_wait(epoll, &event, 1, -1) >= 0) {
            if (event.data.fd == listener) {
                event = {.events = EPOLLIN, .data = {.fd = ::accept(listener, nullptr, nullptr)}};
                ::epoll_ctl(epoll, EPOLL_CTL_ADD, event.data.fd, &event);
                continue;
            }
            std::array<char, 64> bytes{};
            const auto read = ::read(event.data.fd, bytes.data(), bytes.size());
            if (read <= 0 || bytes[0] == 'q' || ::write(event.data.fd, bytes.data(), 1) != 1)
                ::close(event.data.fd);
        }
        ::_exit(0);
    }
    int connect() {
        Fd made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        EXPECT_EQ(::connect(made.get(), reinterpret_cast<sockaddr*>(&address_), sizeof(address_)), 0);
        clients_.push_back(std::move(made));
        return clients_.back().get();
    }
    /// Sends one byte and waits for it to come back.
    static void talk(int client) {
        char byte = 'x';
        EXPECT_EQ(::send(client, &byte, 1, 0), 1);
        EXPECT_EQ(::recv(client, &byte, 1, 0), 1);
    }
    ReadCounts look(Sampler& sampler, std::size_t most) const {
        const std::array pids{static_cast<int>(child_)};
        sampler.look(pids, most, always);
        ReadCounts counts;
        sampler.take(counts);
        return counts;
    }
    static std::uint64_t sum(const ReadCounts& counts) {
        std::uint64_t all = 0;
        for (const auto& count : counts.counts)
            all += count.reads;
        return all;
    }

    std::optional<Root> root_;
    sockaddr_in address_{};
    pid_t child_ = 0;
    std::vector<Fd> clients_;
};

TEST_F(Served, ASampleSaysWherePacketsArriveAndWhereTheyAreRead) {
    for (int i = 0; i < 20; ++i)
        talk(connect());
    Sampler sampler(*root_);
    const auto counts = look(sampler, 200);
    EXPECT_EQ(sum(counts), 20U);
    for (const auto& count : counts.counts) {
        EXPECT_EQ(count.pid, child_);
        EXPECT_TRUE(count.arrival);
        EXPECT_EQ(count.reader, cpu);
        EXPECT_GT(count.network_space, 0U);
    }
    EXPECT_TRUE(counts.names.contains(child_));
    EXPECT_EQ(sampler.take_refused(), 0);
    EXPECT_EQ(sampler.unplaced(), 0U);
}

TEST_F(Served, WhatIsNoCpuOfThisMachineIsNotKnown) {
    talk(connect());
    const auto files = host::ForeignFiles::open(child_);
    ASSERT_TRUE(files);
    int told = 0;
    for (int number = 0; number < 64; ++number)
        if (const auto socket = files->socket(number); socket && socket->silence())
            told += socket->set_incoming_cpu(4'000'000) == 0 ? 1 : 0;
    ASSERT_EQ(told, 1);
    Sampler sampler(*root_);
    const auto counts = look(sampler, 200);
    ASSERT_EQ(sum(counts), 1U);
    EXPECT_FALSE(counts.counts.front().arrival);
}

TEST_F(Served, OnlyConnectionsWithNewDataCount) {
    const int busy = connect();
    talk(busy);
    talk(connect());
    Sampler sampler(*root_);
    EXPECT_EQ(sum(look(sampler, 200)), 2U);
    std::this_thread::sleep_for(std::chrono::milliseconds(300)); // so that the second is silent for longer
    look(sampler, 200);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    talk(busy);
    EXPECT_EQ(sum(look(sampler, 200)), 1U);
}

TEST_F(Served, NoMoreThanItsShareIsLookedAtAndTheNextOnesHaveTheirTurn) {
    for (int i = 0; i < 30; ++i)
        talk(connect());
    Sampler sampler(*root_);
    EXPECT_EQ(sum(look(sampler, 10)), 10U);
    std::this_thread::sleep_for(std::chrono::seconds(2)); // longer than all that follows
    for (const auto& client : clients_)
        talk(client.get());
    EXPECT_EQ(sum(look(sampler, 200)), 30U) << "from where it ended, once around";
    // Two processes share; of this one, which has two threads, nobody knows who reads.
    for (const auto& client : clients_)
        talk(client.get());
    const std::array pids{static_cast<int>(::getpid()), static_cast<int>(child_)};
    Sampler fresh(*root_);
    fresh.look(pids, 20, always);
    ReadCounts counts;
    fresh.take(counts);
    EXPECT_EQ(sum(counts), 10U);
    EXPECT_EQ(fresh.unplaced(), 10U);
}

/// True once `client` was told that the connection is over.
bool is_over(int client, std::chrono::milliseconds patience) {
    pollfd wait{.fd = client, .events = POLLIN, .revents = 0};
    char byte = 0;
    return ::poll(&wait, 1, static_cast<int>(patience.count())) == 1 && ::recv(client, &byte, 1, 0) == 0;
}

/// Sampled all the time, which is ten thousand times as often as the daemon does.
TEST_F(Served, AConnectionThatIsClosedMeanwhileIsClosedOnTheWire) {
    const int other = connect();
    std::vector<int> clients;
    for (int i = 0; i < 400; ++i)
        talk(clients.emplace_back(connect()));
    std::jthread looking([&](const std::stop_token& stop) {
        Sampler sampler(*root_);
        while (!stop.stop_requested())
            look(sampler, 1000);
    });
    std::vector<std::chrono::microseconds> times;
    int late = 0;
    for (const int client : clients) {
        const auto begun = Clock::now();
        ASSERT_EQ(::send(client, "q", 1, 0), 1); // it closes
        if (!is_over(client, std::chrono::seconds(1))) {
            ++late;
            talk(other); // wakes the server
            ASSERT_TRUE(is_over(client, std::chrono::seconds(30)));
        }
        times.push_back(std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begun));
    }
    // Whoever is interrupted for a time slice between two system calls may still be the one too early.
    EXPECT_LE(late, 4) << "of 400 wait for the server's next event";
    std::ranges::sort(times);
    EXPECT_LT(times[times.size() / 2], std::chrono::milliseconds(10)) << "the machine may be busy";
}

/// This process has the clients' ends of the same connections.
TEST_F(Served, ThoseThatAreWaitedForAndOthersAreInOneAnswer) {
    for (int i = 0; i < 10; ++i)
        talk(connect());
    Sampling sampling(*root_);
    const int own = ::getpid();
    ASSERT_TRUE(sampling.ask({.awaited = {{child_}}, .groups = {{own}}, .most = 200, .number = 7}));
    pollfd wait{.fd = sampling.fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&wait, 1, 30000), 1);
    const auto found = sampling.take();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->number, 7U);
    EXPECT_EQ(found->refused, 0);
    EXPECT_EQ(sum(found->counts), 10U) << "of two threads of this process, none waits for the sockets";
    EXPECT_TRUE(found->counts.names.contains(child_));
    EXPECT_TRUE(found->counts.names.contains(own));
    EXPECT_FALSE(sampling.take()) << "it is told once";
}

TEST_F(Served, WhoHasGoneIsLeftOut) {
    Sampler sampler(*root_);
    const std::array pids{4194305, static_cast<int>(child_)};
    talk(connect());
    sampler.look(pids, 10, always);
    ReadCounts counts;
    sampler.take(counts);
    EXPECT_EQ(sum(counts), 1U);
    sampler.keep_only({});
    sampler.look(pids, 10, [] { return false; });
    ReadCounts none;
    sampler.take(none);
    EXPECT_TRUE(none.counts.empty()) << "no socket is begun with after the end";
}

TEST_F(Served, AConnectionWhoseLockSomebodyHoldsIsAvoided) {
    const int client = connect();
    talk(client);
    const auto inode = host::ForeignFiles::open(::getpid())->inode(client);
    ASSERT_TRUE(inode);
    const Forked child([] { ::pause(); }); // has it open, too
    const std::array pids{child.pid()};
    Sampler sampler(*root_);
    {
        const HeldSocket held(client);
        sampler.look(pids, 200, always);
    }
    EXPECT_EQ(sampler.take_refused(), EBUSY);
    EXPECT_TRUE(host::is_avoided({host::Avoid::inode, *inode}));
    EXPECT_TRUE(host::is_process_avoided(child.pid()));
}

} // namespace
} // namespace affinityd::locality
