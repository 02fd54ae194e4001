// SPDX-License-Identifier: Apache-2.0
// On the real kernel, with children of the test's own only.
#include "accepting.hpp"
#include "host/avoided.hpp"
#include "host/fd.hpp"
#include "host/foreign_socket.hpp"
#include "inventory/accept_list.hpp"
#include "inventory/accept_sockets.hpp"
#include "support/held_socket.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>

namespace affinityd::inventory {
namespace {

TEST_F(Accepting, AWorkerThatWaitsForItsOwnListenerIsFound) {
    const int mine = listener(0);
    const int other = listener(port_of(mine));
    const Forked child([&] { wait_for_ever(watch(mine)); }); // it has both open, as nginx's workers have
    const auto found = read_until(child.pid(), [](const auto& one) { return !one.sockets.empty(); });
    EXPECT_EQ(found.code, 0);
    ASSERT_EQ(found.sockets.size(), 1U);
    const auto& socket = found.sockets.front();
    EXPECT_EQ(socket.number, mine);
    EXPECT_EQ(socket.port, port_of(mine));
    EXPECT_TRUE(socket.shares_port);
    EXPECT_EQ(socket.incoming_cpu, -1);
    EXPECT_EQ(socket.threads, std::vector<int>{child.pid()});
    const auto own = host::ForeignFiles::open(::getpid());
    ASSERT_TRUE(own);
    EXPECT_EQ(own->socket(mine)->cookie(), socket.cookie);
    EXPECT_EQ(own->socket(mine)->bound_to(), socket.bound_to);
    EXPECT_EQ(own->socket(other)->bound_to(), socket.bound_to);
    EXPECT_NE(own->socket(other)->cookie(), socket.cookie);
    ::close(mine);
    ::close(other);
}

TEST_F(Accepting, WhoOnlyHasItOpenIsNotFound) {
    const int mine = listener(0);
    const Forked worker([&] { wait_for_ever(watch(mine)); });
    const Forked master([&] { ::pause(); });
    EXPECT_EQ(read_until(worker.pid(), [](const auto& one) { return !one.sockets.empty(); }).sockets.size(),
              1U);
    EXPECT_TRUE(reader.read(id(master.pid())).sockets.empty());
    ::close(mine);
}

TEST_F(Accepting, ThreadsAreToldApart) {
    const int first = listener(0);
    const int second = listener(port_of(first));
    const Forked child([&] {
        std::thread([&] { wait_for_ever(watch(first)); }).detach();
        while (true)
            std::ignore = ::accept4(second, nullptr, nullptr, 0);
    });
    const auto found = read_until(child.pid(), [](const auto& one) {
        return one.sockets.size() == 2 && !one.sockets[0].threads.empty() && !one.sockets[1].threads.empty();
    });
    ASSERT_EQ(found.sockets.size(), 2U);
    ASSERT_EQ(found.sockets[0].threads.size(), 1U);
    EXPECT_NE(found.sockets[0].threads.front(), child.pid());
    EXPECT_EQ(found.sockets[1].threads, std::vector<int>{child.pid()});
    ::close(first);
    ::close(second);
}

TEST_F(Accepting, AThreadThatRunsWhenItIsLookedAtIsRemembered) {
    const int mine = listener(0);
    std::array<int, 2> pipe{};
    ASSERT_EQ(::pipe(pipe.data()), 0);
    const Forked child([&] {
        std::thread([] { ::pause(); }).detach();
        const int epoll = watch(mine);
        epoll_event event{};
        epoll_event also{.events = EPOLLIN, .data = {}};
        ::epoll_ctl(epoll, EPOLL_CTL_ADD, pipe[0], &also);
        ::epoll_wait(epoll, &event, 1, -1);
        while (true)
            ; // runs from now on
    });
    const auto is_known = [](const auto& one) {
        return one.sockets.size() == 1 && !one.sockets[0].threads.empty();
    };
    ASSERT_TRUE(is_known(read_until(child.pid(), is_known)));
    ASSERT_EQ(::write(pipe[1], "x", 1), 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_TRUE(is_known(reader.read(id(child.pid()))));
    reader.keep_only({});
    EXPECT_FALSE(is_known(reader.read(id(child.pid()))));
    ::close(mine);
    ::close(pipe[0]);
    ::close(pipe[1]);
}

TEST_F(Accepting, WhoHasEndedOrHasAnotherStartTimeHasNone) {
    const int mine = listener(0);
    TaskId process;
    {
        const Forked child([&] { wait_for_ever(watch(mine)); });
        process = id(child.pid());
        EXPECT_EQ(reader.read({process.tid, process.start_time + 1}).code, ESRCH);
    }
    const auto found = reader.read(process);
    EXPECT_EQ(found.code, ESRCH);
    EXPECT_TRUE(found.sockets.empty());
    ::close(mine);
}

TEST_F(Accepting, TheCpuIsSetAndTakenBackFromOutside) {
    const int mine = listener(0);
    const Forked child([&] { wait_for_ever(watch(mine)); });
    const auto files = host::ForeignFiles::open(child.pid());
    ASSERT_TRUE(files);
    const auto socket = files->socket(mine);
    ASSERT_TRUE(socket);
    EXPECT_TRUE(socket->accepts());
    EXPECT_EQ(socket->set_incoming_cpu(1), 0);
    int cpu = 0;
    socklen_t size = sizeof cpu;
    EXPECT_EQ(::getsockopt(mine, SOL_SOCKET, SO_INCOMING_CPU, &cpu, &size), 0); // the test has it open, too
    EXPECT_EQ(cpu, 1);
    EXPECT_EQ(socket->set_incoming_cpu(-1), 0);
    EXPECT_EQ(socket->incoming_cpu(), -1);
    EXPECT_EQ(files->socket(4711).error(), EBADF);
    ::close(mine);
}

TEST_F(Accepting, ListenersAreFoundAmongManyConnections) {
    const int alone = listener(0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_of(alone));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const Forked child([&] {
        std::vector<int> watched;
        for (int i = 0; i < 600; ++i) {
            const int one = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
            std::ignore = ::connect(one, reinterpret_cast<const sockaddr*>(&address), sizeof address);
            watched.push_back(one);
        }
        watched.push_back(listener(0));
        watched.push_back(listener(0));
        wait_for_ever(watch(watched));
    });
    AcceptSockets found;
    for (int i = 0; i < 2000 && found.sockets.size() < 2; ++i) {
        const auto around =
            std::make_shared<const ListeningSockets>(ListeningSockets::read(root, child.pid(), persons));
        found = reader.read(id(child.pid()), {::geteuid(), around});
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(found.sockets.size(), 2U) << "who listens was known before anything was looked into";
    EXPECT_EQ(found.held.size(), 3U) << "with the one that it has inherited, and does not wait for";
    ::close(alone);
}

TEST_F(Accepting, TheListIsReadOnAThread) {
    const int mine = listener(0);
    const Forked child([&] { wait_for_ever(watch(mine)); });
    read_until(child.pid(), [](const auto& one) { return !one.sockets.empty(); });
    AcceptList list(root);
    EXPECT_FALSE(list.take());
    ASSERT_TRUE(list.ask({id(child.pid()), id(::getpid())}));
    pollfd ready{.fd = list.fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&ready, 1, 20000), 1);
    const auto found = list.take();
    ASSERT_TRUE(found);
    ASSERT_EQ(found->size(), 2U);
    const auto its = std::ranges::find(*found, id(child.pid()), &AcceptSockets::process);
    ASSERT_NE(its, found->end());
    EXPECT_EQ(its->sockets.size(), 1U);
    EXPECT_FALSE(list.take());
    ::close(mine);
}

TEST_F(Accepting, AListenerWhoseLockSomebodyHoldsIsAvoidedUntilSoonAfterItIsLetGo) {
    const int mine = listener(0);
    const Forked child([&] { wait_for_ever(watch(mine)); });
    const auto is_found = [](const auto& one) { return !one.sockets.empty(); };
    const auto inode = read_until(child.pid(), is_found).sockets.at(0).inode;
    {
        const HeldSocket held(mine);
        const auto found = reader.read(id(child.pid()));
        EXPECT_EQ(found.code, EBUSY);
        EXPECT_TRUE(found.is_avoided());
        EXPECT_TRUE(host::is_avoided({host::Avoid::inode, inode}));
        EXPECT_TRUE(host::is_process_avoided(child.pid()));
        EXPECT_FALSE(found.knows_all);
        EXPECT_FALSE(reader.read(id(child.pid())).knows_all) << "nor when no call is made: it may have more";
    }
    EXPECT_EQ(read_until(child.pid(), is_found, 90).sockets.size(), 1U) << "not after ten minutes";
    ::close(mine);
}

} // namespace
} // namespace affinityd::inventory
