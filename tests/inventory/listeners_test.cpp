// SPDX-License-Identifier: Apache-2.0
// Who listens on the ports that matter, among many who listen elsewhere.
#include "../support/no_descriptors_left.hpp"
#include "inventory/listener_list.hpp"
#include "inventory/net_files.hpp"
#include "inventory/process_sockets.hpp"
#include "inventory/socket_dump.hpp"
#include "recorded.hpp"
#include "support/nobody.hpp"
#include "support/soon.hpp"

#include <ctime>
#include <optional>
#include <ranges>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

namespace affinityd::inventory {
namespace {

using namespace std::chrono_literals;
using host::Fd;
using Ports = std::vector<std::uint16_t>;

/// A listening socket of any port.
struct Server {
    explicit Server(int family = AF_INET, int type = SOCK_STREAM)
        : socket(::socket(family, type | SOCK_CLOEXEC, 0)) {
        if (type == SOCK_STREAM) {
            EXPECT_EQ(::listen(socket.get(), 1), 0);
        } else {
            const sockaddr_storage any{.ss_family = static_cast<sa_family_t>(family)};
            EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any), sizeof(sockaddr_in6)), 0);
        }
        sockaddr_in6 address{}; // the port is at the same place in both
        socklen_t length = sizeof address;
        EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
        port = ntohs(address.sin6_port);
    }
    Fd socket;
    std::uint16_t port = 0;
};

host::Root this_machine() { return std::move(host::Root::open("/")).value(); }

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
        return ports ? ports->ports : Ports{};
    }
    bool is_listed_soon(std::uint16_t port) {
        const auto is_listed = [&] {
            list_.ask();
            return std::ranges::binary_search(of_this_process(), port);
        };
        return affinityd::test::soon(is_listed);
    }
    [[nodiscard]] bool has_news() const {
        pollfd wanted{list_.fd(), POLLIN, 0};
        return ::poll(&wanted, 1, 20'000) == 1;
    }
    host::Root root_ = this_machine();
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
    EXPECT_EQ(list_.find(1, {1}), ListenPorts{}) << "no port matters";
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
    bool has_new = true;
    for (int look = 0; look < 20 && has_new; ++look) { // other programs may begin to listen, too
        std::optional<Server> gone(std::in_place);
        ASSERT_TRUE(is_listed_soon(gone->port));
        static_cast<void>(list_.take_news());
        gone.reset();
        list_.ask();
        ASSERT_TRUE(has_news());
        has_new = list_.take_news().has_new;
    }
    EXPECT_FALSE(has_new) << "somebody listens no more";
    EXPECT_EQ(of_this_process(), Ports{late.port});
}

TEST_F(Listening, WhoListensElsewhereCostsTheListNothing) {
    std::vector<Server> crowd(500);
    const Server server;
    ListenerList small(root_, {.in_all = 3});
    small.want({{server.port, server.port}});
    small.ask();
    EXPECT_FALSE(small.is_awaited(20s));
    const auto inodes = socket_inodes(root_, ::getpid()).value();
    EXPECT_EQ(small.find(1, inodes), ListenPorts{{server.port}});
    small.want({{1, 1}});
    EXPECT_NE(small.find(1, inodes), ListenPorts{{server.port}}) << "what was known was of other ports";
    small.want({{1, 65535}});
    EXPECT_FALSE(small.is_awaited(20s));
    EXPECT_FALSE(small.lack().unread.empty());
}

/// Makes the sockets of others meanwhile.
struct Another {
    explicit Another(uid_t user) : before(static_cast<uid_t>(::setfsuid(user))) {}
    Another(const Another&) = delete;
    Another& operator=(const Another&) = delete;
    ~Another() { ::setfsuid(before); }
    uid_t before;
};
using affinityd::test::nobody;
constexpr uid_t somebody = 65533;

class Crowded : public Listening {
  protected:
    static std::uint64_t inode_of(const Fd& socket) {
        struct stat status {};
        EXPECT_EQ(::fstat(socket.get(), &status), 0);
        return status.st_ino;
    }
    static ListenPorts ports_of(ListenerList& list, const Server& server) {
        return list.find(1, {inode_of(server.socket)}).value_or(ListenPorts{});
    }
    /// Waits for a list that is begun after this and differs.
    static void read(ListenerList& list) {
        list.ask();
        pollfd wanted{list.fd(), POLLIN, 0};
        EXPECT_EQ(::poll(&wanted, 1, 20'000), 1);
        static_cast<void>(list.take_news());
    }
};

TEST_F(Crowded, OneUserTakesNobodysPlace) {
    ASSERT_EQ(::geteuid(), 0U) << "to have sockets of other users, this test needs root";
    ListenerList list(root_, {.of_user = 40});
    list.want({{1, 65535}});
    std::vector<Server> crowd;
    {
        const Another user(nobody);
        crowd = std::vector<Server>(200);
    }
    const Server roots(AF_INET6, SOCK_DGRAM);
    const Another user(somebody);
    const Server theirs(AF_INET6);
    read(list);
    EXPECT_EQ(ports_of(list, theirs), ListenPorts{{theirs.port}});
    EXPECT_EQ(ports_of(list, roots), ListenPorts{{roots.port}});
    EXPECT_EQ(list.lack().crowded, std::vector<std::uint32_t>{nobody});
    EXPECT_TRUE(list.lack().unread.empty());
    const auto known = [&](const Server& server) { return !ports_of(list, server).ports.empty(); };
    EXPECT_EQ(std::ranges::count_if(crowd, known), 40);
    const auto lost = std::ranges::find_if_not(crowd, known);
    ASSERT_NE(lost, crowd.end());
    EXPECT_FALSE(ports_of(list, *lost).are_all) << "it is not said that it does not listen";
    crowd.resize(3);
    read(list);
    EXPECT_TRUE(list.lack().crowded.empty());
    EXPECT_EQ(std::ranges::count_if(crowd, known), 3);
}

TEST_F(Crowded, WhoWasKnownToListenCountsOnInAListThatIsNotRead) {
    Server before(AF_INET6, SOCK_DGRAM), gone(AF_INET6, SOCK_DGRAM);
    const auto [low, high] = std::minmax(before.port, gone.port);
    // Those that listen elsewhere on this machine already have a place.
    const auto there = listed(AF_INET, {{1, 65535}}).size() + listed(AF_INET6, {{1, 65535}}).size();
    ListenerList list(root_, {.in_all = there + 100});
    list.want({{low, low}, {high, high}});
    read(list);
    EXPECT_EQ(ports_of(list, before), ListenPorts{{before.port}});
    const std::vector<Server> crowd(there + 200);
    list.want({{1, 65535}});
    read(list);
    ASSERT_EQ(list.lack().unread.size(), net_files.size()) << "it is full with the first";
    EXPECT_EQ(ports_of(list, before), ListenPorts{{before.port}}) << "also where other ports matter now";
    const Server late(AF_INET6, SOCK_DGRAM);
    EXPECT_EQ(ports_of(list, late), (ListenPorts{{}, false}));
}

TEST_F(Crowded, AListThatTakesTooLongIsLeftOff) {
    ListenerList list(root_, {.cpu_time = 0ns});
    const std::vector<Server> crowd(900);
    const auto port = [](const Server& server) { return server.port; };
    const auto highest = std::ranges::max(crowd | std::views::transform(port));
    const auto lowest = std::ranges::min(crowd | std::views::transform(port));
    list.want({{lowest, highest}});
    read(list);
    const auto lack = list.lack();
    ASSERT_FALSE(lack.unread.empty());
    EXPECT_EQ(lack.unread.front(), (Listeners::Unread{"tcp", ::geteuid()}));
    const auto known = [&](const Server& server) { return !ports_of(list, server).ports.empty(); };
    EXPECT_LT(std::ranges::count_if(crowd, known), 900);
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
        EXPECT_EQ(list_.find(1, inodes), ListenPorts{{server.port}});
    }
    for (int i = 0; i < 1000 && list_.fault(); ++i)
        ::usleep(10'000);
    EXPECT_FALSE(list_.fault());
}

} // namespace
} // namespace affinityd::inventory
