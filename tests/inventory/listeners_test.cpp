// SPDX-License-Identifier: Apache-2.0
// Who listens on the ports that matter, among many who listen elsewhere.
#include "../support/no_descriptors_left.hpp"
#include "inventory/listener_list.hpp"
#include "inventory/process_sockets.hpp"
#include "inventory/socket_dump.hpp"
#include "recorded.hpp"

#include <ctime>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace affinityd::inventory {
namespace {

using namespace std::chrono_literals;
using host::Fd;
using Ports = std::vector<std::uint16_t>;

/// A listening socket of any port.
struct Server {
    explicit Server(int family = AF_INET) : socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        EXPECT_EQ(::listen(socket.get(), 1), 0);
        sockaddr_in6 address{}; // the port is at the same place in both
        socklen_t length = sizeof address;
        EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
        port = ntohs(address.sin6_port);
    }
    Fd socket;
    std::uint16_t port = 0;
};

host::Root live() { return std::move(host::Root::open("/")).value(); }

Ports listed(int family, const PortRanges& ports) {
    auto dump = SocketDump::open(Protocol::tcp, family, Wanted::listeners, ports).value();
    Ports found;
    auto step = SocketDump::Step::more;
    while (step == SocketDump::Step::more)
        step = dump.next([&](const LocalSocket& socket) { found.push_back(socket.port); }).value();
    EXPECT_EQ(step, SocketDump::Step::end);
    std::ranges::sort(found);
    return found;
}

class Listening : public testing::Test {
  protected:
    Ports of_this_process() {
        const auto inodes = socket_inodes(root_, ::getpid()).value();
        EXPECT_FALSE(list_.is_awaited(20s));
        auto ports = list_.find(::getpid(), inodes);
        return ports ? *ports : Ports{};
    }
    [[nodiscard]] bool has_news() const {
        pollfd wanted{list_.fd(), POLLIN, 0};
        return ::poll(&wanted, 1, 20'000) == 1;
    }
    host::Root root_ = live();
    ListenerList list_{root_};
};

TEST(FewRanges, AreApartAndTheNearestBecomeOne) {
    EXPECT_EQ(few_ranges({{8080, 8090}, {80, 80}, {81, 81}, {8085, 8100}}, 9),
              (PortRanges{{80, 81}, {8080, 8100}}));
    EXPECT_EQ(few_ranges({{1, 1}, {100, 110}, {120, 120}, {9000, 9000}}, 3),
              (PortRanges{{1, 1}, {100, 120}, {9000, 9000}}));
    EXPECT_EQ(few_ranges({{65535, 65535}, {1, 65535}}, 1), (PortRanges{{1, 65535}}));
    EXPECT_TRUE(few_ranges({}, 1).empty());
}

TEST(SocketDump, TheKernelPassesOverOtherPorts) {
    for (const int family : {AF_INET, AF_INET6}) {
        const Server one(family), two(family), three(family);
        Ports own{one.port, two.port, three.port};
        std::ranges::sort(own);
        const auto all = listed(family, {});
        EXPECT_TRUE(std::ranges::includes(all, own));
        EXPECT_EQ(listed(family, {{two.port, two.port}}), Ports{two.port});
        EXPECT_EQ(listed(family, {{own[0], own[0]}, {own[2], own[2]}}), (Ports{own[0], own[2]}));
        EXPECT_EQ(listed(family, {{1, 1}, {own[0], own[0]}, {own[1], own[1]}, {own[2], own[2]}}), own);
        EXPECT_EQ(listed(family, {{1, 65535}}), all);
        PortRanges many; // more than the kernel is asked for
        for (unsigned port = 1; port < 60'000; port += 2)
            many.emplace_back(port, port);
        many.emplace_back(own[0], own[0]);
        EXPECT_TRUE(std::ranges::includes(listed(family, many), Ports{own[0]}));
    }
}

TEST_F(Listening, NobodyWaitsForTheFirstListAndItIsTold) {
    const Server server;
    EXPECT_EQ(list_.find(1, {1}), Ports{}) << "no port matters";
    list_.want({{server.port, server.port}});
    EXPECT_FALSE(list_.find(::getpid(), {1}));
    ASSERT_TRUE(has_news());
    const auto news = list_.take_news();
    EXPECT_EQ(news.processes, std::vector{::getpid()});
    EXPECT_FALSE(news.has_new) << "nobody knows who listened before";
    EXPECT_EQ(of_this_process(), Ports{server.port});
}

TEST_F(Listening, WhoBeginsToListenIsNewsAndWhoWasAskedForBeforeIsNamed) {
    Server before;
    list_.want({{1, 65535}});
    list_.ask();
    EXPECT_EQ(of_this_process(), Ports{before.port});
    ASSERT_TRUE(has_news());
    static_cast<void>(list_.take_news());
    Server late;
    static_cast<void>(of_this_process());
    ASSERT_TRUE(has_news());
    auto news = list_.take_news();
    EXPECT_TRUE(news.has_new);
    EXPECT_EQ(news.processes, std::vector{::getpid()});
    Ports both{before.port, late.port};
    std::ranges::sort(both);
    EXPECT_EQ(of_this_process(), both);
    before.socket.reset();
    list_.ask();
    ASSERT_TRUE(has_news());
    EXPECT_FALSE(list_.take_news().has_new) << "somebody listens no more";
    EXPECT_EQ(of_this_process(), Ports{late.port});
}

TEST_F(Listening, WhoListensElsewhereCostsTheListNothing) {
    std::vector<Server> crowd(500);
    const Server server;
    ListenerList small(root_, 3);
    small.want({{server.port, server.port}});
    small.ask();
    EXPECT_FALSE(small.is_awaited(20s));
    const auto inodes = socket_inodes(root_, ::getpid()).value();
    EXPECT_EQ(small.find(1, inodes), Ports{server.port});
    EXPECT_FALSE(small.is_truncated());
    small.want({{1, 1}});
    EXPECT_NE(small.find(1, inodes), Ports{server.port}) << "what was known was of other ports";
    small.want({{1, 65535}});
    EXPECT_FALSE(small.is_awaited(20s));
    EXPECT_TRUE(small.is_truncated());
}

TEST_F(Listening, ItsReadingTakesATwentiethOfACpuAtMost) {
    std::vector<Server> crowd(900);
    list_.want({{1, 65535}});
    const auto used = [] {
        timespec now{};
        ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
        return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
    };
    const auto before = used();
    const auto end = std::chrono::steady_clock::now() + 2s;
    while (std::chrono::steady_clock::now() < end) {
        list_.ask();
        ::usleep(2000);
    }
    EXPECT_LT(used() - before, 300ms) << "with what the asking takes";
}

TEST_F(Listening, WithoutFreeDescriptorsWhatWasKnownCounts) {
    const Server server;
    list_.want({{server.port, server.port}});
    list_.ask();
    const auto inodes = socket_inodes(root_, ::getpid()).value();
    EXPECT_FALSE(list_.is_awaited(20s));
    {
        const test::NoDescriptorsLeft none;
        list_.ask();
        for (int i = 0; i < 1000 && !list_.fault(); ++i)
            ::usleep(10'000);
        EXPECT_TRUE(list_.fault());
        EXPECT_EQ(list_.find(1, inodes), Ports{server.port});
    }
    for (int i = 0; i < 1000 && list_.fault(); ++i)
        ::usleep(10'000);
    EXPECT_FALSE(list_.fault());
}

} // namespace
} // namespace affinityd::inventory
