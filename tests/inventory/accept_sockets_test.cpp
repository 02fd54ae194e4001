// SPDX-License-Identifier: Apache-2.0
// On the real kernel, with children of the test's own only.
#include "host/fd.hpp"
#include "host/foreign_socket.hpp"
#include "inventory/accept_list.hpp"
#include "inventory/accept_sockets.hpp"
#include "inventory/lookup.hpp"

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
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::inventory {
namespace {

/// A listener of 127.0.0.1, with SO_REUSEPORT unless `is_alone`. `port` 0: any.
int listener(std::uint16_t port, bool is_alone = false) {
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

std::uint16_t port_of(int fd) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    EXPECT_EQ(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
    return ntohs(address.sin_port);
}

int watch(const std::vector<int>& files) {
    const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{.events = EPOLLIN, .data = {}};
    for (const int fd : files)
        EXPECT_EQ(::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
    return epoll;
}

int watch(int listener) { return watch(std::vector{listener}); }

[[noreturn]] void wait_for_ever(int epoll) {
    epoll_event event{};
    while (true)
        ::epoll_wait(epoll, &event, 1, -1);
}

/// A child, ended at the latest here.
class Forked {
  public:
    explicit Forked(const std::function<void()>& life) : pid_(::fork()) {
        if (pid_ != 0) return;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        life();
        ::_exit(0);
    }
    Forked(const Forked&) = delete;
    Forked& operator=(const Forked&) = delete;
    ~Forked() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    [[nodiscard]] int pid() const { return pid_; }

  private:
    int pid_;
};

class Accepting : public testing::Test {
  protected:
    [[nodiscard]] TaskId id(int pid) const {
        const auto thread = read_thread(root, pid, pid);
        return thread && *thread ? (*thread)->id : TaskId{pid, 0};
    }
    /// Reads until `is_there`, for 20 s at most.
    AcceptSockets read_until(int pid, const std::function<bool(const AcceptSockets&)>& is_there) {
        AcceptSockets found;
        for (int i = 0; i < 2000; ++i) {
            found = reader.read(id(pid));
            if (is_there(found)) break;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        return found;
    }
    host::Root root = *host::Root::open();
    AcceptReader reader{root};
};

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
    const Clients later(port(1), 2), others(port(3), 4);
    EXPECT_EQ(counted(child.pid(), 12, reader),
              (std::map<std::uint16_t, std::size_t>{{port(0), 2}, {port(1), 2}, {port(2), 4}, {port(3), 4}}))
        << "a thread's listeners have its connections together";
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
    ::close(mine);
    ::close(shared);
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
    EXPECT_EQ(found->front().sockets.size(), 1U);
    EXPECT_FALSE(list.take());
    ::close(mine);
}

} // namespace
} // namespace affinityd::inventory
