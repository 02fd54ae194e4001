// SPDX-License-Identifier: Apache-2.0
// On the real kernel, with children of the test's own only.
#include "host/scheduler.hpp"
#include "inventory/descriptors.hpp"
#include "inventory/facts.hpp"
#include "inventory/process_files.hpp"
#include "inventory/sockets.hpp"
#include "recorded.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <thread>
#include <tuple>

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::inventory {
namespace {

using affinityd::test::read_process;
using host::Fd;

host::Root live() {
    auto root = host::Root::open();
    EXPECT_TRUE(root);
    return std::move(*root);
}

/// Until all that listen are listed.
void await_listeners(FactSources& sources) {
    sources.listeners()->want({{1, 65535}});
    EXPECT_FALSE(sources.listeners()->is_awaited(std::chrono::seconds(20)));
}

/// A child that runs `life`, tells that it is ready, and waits to be ended; ended and collected at the latest
/// here.
class Child {
  public:
    explicit Child(const std::function<void()>& life) {
        std::array<int, 2> ready{};
        EXPECT_EQ(::pipe2(ready.data(), O_CLOEXEC), 0);
        pid_ = ::fork();
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            life();
            std::ignore = ::write(ready[1], "x", 1);
            while (true)
                ::pause();
        }
        ::close(ready[1]);
        char byte = 0;
        EXPECT_EQ(::read(ready[0], &byte, 1), 1);
        ::close(ready[0]);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child() {
        ::kill(pid_, SIGKILL);
        if (!collected_) ::waitpid(pid_, nullptr, 0);
    }
    [[nodiscard]] int pid() const { return pid_; }
    void end_uncollected() const {
        ::kill(pid_, SIGKILL);
        siginfo_t info{};
        ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
    }
    void collect() {
        ::waitpid(pid_, nullptr, 0);
        collected_ = true;
    }

  private:
    int pid_ = -1;
    bool collected_ = false;
};

void start_named_threads(int count) {
    static std::atomic<int> named;
    named = 0;
    for (int i = 0; i < count; ++i)
        std::thread([i] {
            ::prctl(PR_SET_NAME, ("named-" + std::to_string(i)).c_str());
            ++named;
            while (true)
                ::pause();
        }).detach();
    while (named < count)
        std::this_thread::yield();
}

TEST(RealUser, IsWhoStartedTheProcess) {
    EXPECT_EQ(read_real_user(live(), ::getpid()), ::getuid());
    EXPECT_EQ(live().proc().owner(std::to_string(::getpid())), ::geteuid());
    EXPECT_FALSE(read_real_user(live(), 2'000'000'000));
    EXPECT_FALSE(live().proc().owner("2000000000"));
    const auto root = live();
    FactSources sources(root);
    EXPECT_EQ(sources.owner(::getpid()), sources.person(::geteuid()));
    EXPECT_EQ(sources.owner(2'000'000'000), FactSources::gone) << "what is gone is not root's";
    EXPECT_EQ(sources.starter(2'000'000'000), FactSources::gone);
}

TEST(Live, AllThreadsWithNamesAndMasks) {
    const auto root = live();
    const auto machine = host::get_affinity(0);
    ASSERT_TRUE(machine);
    const CpuSet one{machine->last()};
    const Child child([&] {
        ::prctl(PR_SET_NAME, "a) (b\\c\nd");
        start_named_threads(9);
        static_cast<void>(host::set_affinity(0, one)); // the main thread only
    });
    const auto process = read_process(root, child.pid());
    ASSERT_TRUE(process);
    EXPECT_EQ(process->facts->comm(), "a) (b\\c\nd");
    EXPECT_EQ(process->facts->parent(), ::getpid());
    EXPECT_NE(process->facts->exe().find("inventory-test"), std::string::npos);
    ASSERT_EQ(process->threads.size(), 10U);
    EXPECT_EQ(process->threads[0].id, process->facts->id());
    EXPECT_EQ(process->threads[0].allowed, one);
    std::set<std::string> names;
    for (std::size_t i = 1; i < 10; ++i) {
        names.insert(process->threads[i].comm);
        EXPECT_EQ(process->threads[i].allowed, *machine);
    }
    EXPECT_EQ(names.size(), 9U);
    EXPECT_TRUE(names.contains("named-8"));
    const auto thread = read_thread(root, child.pid(), process->threads[3].id.tid).value();
    ASSERT_TRUE(thread);
    EXPECT_EQ(thread->id, process->threads[3].id);
    EXPECT_EQ(read_allowed(root, child.pid(), child.pid()), one);
    EXPECT_FALSE(read_thread(root, child.pid(), ::getpid()).value()) << "a thread of another process";
}

TEST(Live, AnEndedProcessIsGoneBeforeAndAfterItIsCollected) {
    const auto root = live();
    Child child([] {});
    ASSERT_TRUE(read_process(root, child.pid()));
    child.end_uncollected();
    EXPECT_FALSE(read_process(root, child.pid()));
    EXPECT_FALSE(read_thread(root, child.pid(), child.pid()).value());
    child.collect();
    EXPECT_FALSE(read_process(root, child.pid()));
    EXPECT_FALSE(read_allowed(root, child.pid(), child.pid()));
}

TEST(Live, ListOfProcessesHasThisOneAndItsChild) {
    const auto root = live();
    const Child child([] { start_named_threads(2); });
    const auto pids = list_pids(root);
    ASSERT_TRUE(pids);
    EXPECT_TRUE(std::ranges::is_sorted(*pids));
    EXPECT_TRUE(std::ranges::binary_search(*pids, ::getpid()));
    EXPECT_TRUE(std::ranges::binary_search(*pids, child.pid()));
    EXPECT_EQ(read_threads(root, child.pid())->size(), 3U);
}

TEST(Live, AProcessWhoseMainThreadHasEndedKeepsItsFacts) {
    const auto root = live();
    std::array<int, 2> ports{};
    ASSERT_EQ(::pipe2(ports.data(), O_CLOEXEC), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        const int server = ::socket(AF_INET, SOCK_STREAM, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        if (::bind(server, reinterpret_cast<sockaddr*>(&address), size) != 0 || ::listen(server, 1) != 0 ||
            ::getsockname(server, reinterpret_cast<sockaddr*>(&address), &size) != 0)
            ::_exit(1);
        const int port = ntohs(address.sin_port);
        std::thread([] {
            while (true)
                ::pause();
        }).detach();
        std::ignore = ::write(ports[1], &port, sizeof port);
        ::syscall(SYS_exit, 0); // this thread alone
    }
    ::close(ports[1]);
    int port = 0;
    ASSERT_EQ(::read(ports[0], &port, sizeof port), static_cast<ssize_t>(sizeof port));
    ::close(ports[0]);
    const auto own = read_process(root, ::getpid());
    const auto is_dead = [&] {
        return root.proc().text(std::to_string(pid) + "/status")->find("\nState:\tZ") != std::string::npos;
    };
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!is_dead() && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ASSERT_TRUE(is_dead());
    FactSources sources(root);
    await_listeners(sources);
    auto process = read_process(root, pid, &sources);
    while (process && process->facts->cmdline().empty() && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2)); // its answer may be late on a busy machine
        if (auto* lines = sources.command_lines()) static_cast<void>(lines->take_late());
        process = read_process(root, pid, &sources);
    }
    ASSERT_TRUE(process);
    EXPECT_EQ(process->facts->exe(), own->facts->exe());
    EXPECT_TRUE(process->facts->is_exe_true());
    EXPECT_EQ(process->facts->cmdline(), own->facts->cmdline());
    EXPECT_EQ(process->facts->cgroup(), own->facts->cgroup());
    EXPECT_EQ(process->facts->listen_ports(), std::vector<std::uint16_t>{static_cast<std::uint16_t>(port)});
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
}

TEST(Live, KernelThreadsAreToldApart) {
    const auto root = live();
    std::size_t kernel = 0;
    std::size_t immovable = 0;
    for (const int pid : list_pids(root).value_or(std::vector<int>{})) {
        const auto process = read_process(root, pid);
        if (!process || !process->facts->is_kernel()) continue;
        ++kernel;
        EXPECT_EQ(process->facts->exe(), "");
        EXPECT_EQ(process->facts->cmdline(), "");
        for (const auto& thread : process->threads) {
            EXPECT_TRUE(thread.is_kernel());
            immovable += thread.is_immovable() ? 1 : 0;
        }
    }
    const bool in_container =
        !read_process(root, 2); // a process namespace of its own shows no kernel threads
    EXPECT_TRUE(in_container || (kernel > 0 && immovable > 0));
}

// Threads that are made while the list is read must be found: the maker is never pinned before them.
TEST(Live, ThreadsBornWhileTheListIsReadAreFound) {
    const auto root = live();
    const Child child([] {
        std::thread([] {
            for (int i = 0; i < 400; ++i)
                std::thread([] {
                    while (true)
                        ::pause();
                }).detach();
            ::prctl(PR_SET_NAME, "all-there");
            while (true)
                ::pause();
        }).detach();
    });
    std::size_t last = 0;
    for (int i = 0; i < 2000; ++i) {
        const auto process = read_process(root, child.pid());
        ASSERT_TRUE(process);
        EXPECT_GE(process->threads.size(), last);
        last = process->threads.size();
        if (std::ranges::any_of(process->threads, [](const Thread& t) { return t.comm == "all-there"; }))
            break;
    }
    const auto process = read_process(root, child.pid());
    EXPECT_EQ(process->threads.size(), 402U);
}

class Listener {
  public:
    Listener(int family, int type) : fd_(::socket(family, type | SOCK_CLOEXEC, 0)) {
        sockaddr_storage address{};
        address.ss_family = static_cast<sa_family_t>(family);
        socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
        EXPECT_EQ(::bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
        const bool listens = type != SOCK_STREAM || ::listen(fd_.get(), 5) == 0;
        EXPECT_TRUE(listens);
        EXPECT_EQ(::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
        const auto& v4 =
            reinterpret_cast<const sockaddr_in&>(address); // the port is at the same place in both
        port_ = ntohs(v4.sin_port);
    }
    [[nodiscard]] std::uint16_t port() const { return port_; }

  private:
    host::Fd fd_;
    std::uint16_t port_ = 0;
};

TEST(Live, ListenersAreFoundByPortAndOwner) {
    const auto root = live();
    const Listener tcp(AF_INET, SOCK_STREAM);
    const Listener udp(AF_INET, SOCK_DGRAM);
    const auto table = read_socket_table(root, {.wanted = Wanted::listeners}).value();
    const auto inodes = socket_inodes(root.proc().dir(std::to_string(::getpid())).value(), 65536).value();
    const auto find = [&](Protocol protocol, std::uint16_t port) -> const LocalSocket* {
        for (const auto inode : inodes)
            if (const auto* socket = table.find(inode);
                socket != nullptr && socket->protocol == protocol && socket->port == port)
                return socket;
        return nullptr;
    };
    ASSERT_NE(find(Protocol::tcp, tcp.port()), nullptr);
    EXPECT_TRUE(find(Protocol::tcp, tcp.port())->local.is_any());
    EXPECT_TRUE(find(Protocol::tcp, tcp.port())->listens());
    EXPECT_NE(find(Protocol::udp, udp.port()), nullptr);
    FactSources sources(root);
    await_listeners(sources);
    const auto ports =
        sources
            .listen_ports(std::to_string(::getpid()),
                          socket_inodes(root.proc().dir(std::to_string(::getpid())).value(), 65536).value())
            .value();
    EXPECT_TRUE(std::ranges::binary_search(ports, tcp.port()));
    EXPECT_TRUE(std::ranges::binary_search(ports, udp.port()));
}

TEST(Live, ConnectionIsFoundWithItsLocalAddress) {
    const auto root = live();
    const host::Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    ASSERT_EQ(::listen(listener.get(), 1), 0);
    ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
    const host::Fd client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
    const host::Fd server(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const auto table = read_socket_table(root, {}).value();
    struct stat status {};
    ASSERT_EQ(::fstat(server.get(), &status), 0);
    const auto* found = table.find(status.st_ino);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->local.to_text(), "127.0.0.1");
    EXPECT_EQ(found->port, ntohs(address.sin_port));
    EXPECT_EQ(found->state, SocketState::established);
    EXPECT_FALSE(found->local.is_any());
}

TEST(Live, ANamespaceOfItsOwnIsReadThere) {
    if (::geteuid() != 0) return; // making one needs the privilege
    const auto root = live();
    std::array<int, 2> tell{};
    ASSERT_EQ(::pipe2(tell.data(), O_CLOEXEC), 0);
    const Child child([&] {
        if (::unshare(CLONE_NEWNET) != 0) ::_exit(1);
        static Listener listener(AF_INET6, SOCK_STREAM);
        const auto port = listener.port();
        std::ignore = ::write(tell[1], &port, sizeof port);
    });
    std::uint16_t port = 0;
    ASSERT_EQ(::read(tell[0], &port, sizeof port), static_cast<ssize_t>(sizeof port));
    ::close(tell[0]);
    ::close(tell[1]);
    EXPECT_FALSE(shares_network_namespace(root, child.pid()));
    EXPECT_TRUE(shares_network_namespace(root, ::getpid()));
    FactSources sources(root);
    await_listeners(sources);
    const auto process = read_process(root, child.pid(), &sources);
    EXPECT_EQ(process->facts->listen_ports(), std::vector<std::uint16_t>{});
    EXPECT_EQ(process->facts->foreign_ports(), std::vector<std::uint16_t>{port});
}

TEST(Live, APortBelongsToTheNamespaceOfItsSocketWhereverItsProcessLives) {
    const auto root = live();
    std::array<int, 2> tell{};
    ASSERT_EQ(::pipe2(tell.data(), O_CLOEXEC), 0);
    const Child child([&] {
        static Listener listener(AF_INET6, SOCK_STREAM);
        const auto port = listener.port();
        const bool lives_elsewhere = ::unshare(CLONE_NEWNET) == 0;
        std::ignore = ::write(tell[1], &port, lives_elsewhere ? sizeof port : 0);
        ::close(tell[1]);
    });
    ::close(tell[1]);
    std::uint16_t port = 0;
    ASSERT_EQ(::read(tell[0], &port, sizeof port), static_cast<ssize_t>(sizeof port))
        << "the test needs root";
    ::close(tell[0]);
    FactSources sources(root);
    await_listeners(sources);
    const auto process = read_process(root, child.pid(), &sources);
    EXPECT_TRUE(std::ranges::binary_search(process->facts->listen_ports(), port));
    EXPECT_EQ(process->facts->foreign_ports(), std::vector<std::uint16_t>{});
}

} // namespace
} // namespace affinityd::inventory
