// SPDX-License-Identifier: Apache-2.0
// On the real kernel, with children of the test's own only.
#include "host/foreign_socket.hpp"
#include "inventory/accept_list.hpp"
#include "inventory/accept_sockets.hpp"
#include "inventory/lookup.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
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

/// A process with several addresses, whose threads have a listener of each: HAProxy does that.
TEST_F(Accepting, EachThreadsConnectionsAreCountedWithoutItsOwnListenersOnly) {
    constexpr int most = 4;
    std::array<int, 2 * most> listeners{};
    for (auto& one : listeners)
        one = listener(0);
    std::array<int, most> connections{};
    for (auto& one : connections)
        one = ::eventfd(0, EFD_CLOEXEC); // any file that an epoll takes
    const Forked child([&] {
        for (int thread = 1; thread < most; ++thread)
            std::thread([&, thread] {
                wait_for_ever(watch({listeners[2 * thread], listeners[2 * thread + 1]}));
            }).detach();
        std::vector<int> watched(connections.begin(), connections.end());
        watched.insert(watched.end(), {listeners[0], listeners[1]});
        wait_for_ever(watch(watched));
    });
    const auto found = read_until(child.pid(), [](const auto& one) {
        return one.sockets.size() == 2 * most &&
               std::ranges::none_of(one.sockets, [](const auto& socket) { return socket.threads.empty(); });
    });
    ASSERT_EQ(found.sockets.size(), 2U * most);
    for (const auto& socket : found.sockets) {
        const bool is_first = socket.threads == std::vector<int>{child.pid()};
        EXPECT_EQ(socket.connections, is_first ? connections.size() : 0) << socket.number;
    }
    for (const int fd : listeners)
        ::close(fd);
    for (const int fd : connections)
        ::close(fd);
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
