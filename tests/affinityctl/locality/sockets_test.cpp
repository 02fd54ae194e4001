// SPDX-License-Identifier: Apache-2.0
// Sampling: which thread reads what, a socket of another process, and who is meant.
#include "affinityctl/locality/foreign_socket.hpp"
#include "affinityctl/locality/listeners.hpp"
#include "affinityctl/locality/name_space.hpp"
#include "affinityctl/locality/socket_readers.hpp"
#include "affinityctl/locality/subject.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityctl {
namespace {

using affinityd::host::Fd;
using affinityd::host::Root;
using affinityd::netdev::Nic;
using nlohmann::json;

TEST(WaitingCalls, AreReadFromTheKernelsLine) {
    const auto wait = parse_syscall("232 0x5 0x7ffd 0x200 0xffffffffffffffff 0x0 0x0 0x7ffd 0x7f12\n");
    ASSERT_TRUE(wait);
    EXPECT_EQ(wait->number, 232);
    EXPECT_EQ(wait->first, 5);
    EXPECT_EQ(parse_syscall("202 0x7f0012345678 0x80")->first, -1) << "an address is no descriptor";
    for (const char* text :
         {"", "running", "-1 0x7ffd 0x7f12", "232", "232 5", "232 0x", "232 0x5g", "x 0x5", "0x5 0x5"})
        EXPECT_FALSE(parse_syscall(text)) << text;
}

TEST(EpollTargets, AreReadFromFdinfo) {
    const std::string text = "pos:\t0\nflags:\t02\nmnt_id:\t15\nino:\t1034\n"
                             "tfd:        6 events:       19 data: ffffffff00000006  pos:0 ino:1 sdev:8\n"
                             "tfd:       12 events:       19 data:                c  pos:0 ino:2 sdev:8\n"
                             "tfd: x events\ntfd:\ntfd: -3 events:\n";
    EXPECT_EQ(parse_epoll_targets(text), (std::vector<int>{6, 12}));
    EXPECT_TRUE(parse_epoll_targets("").empty());
}

/// A child with a listener at a port of its own and a connection to it; both ends are known by number.
class Served : public testing::Test {
  protected:
    void SetUp() override {
        listener_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof(address);
        auto* raw = reinterpret_cast<sockaddr*>(&address);
        ASSERT_EQ(::bind(listener_.get(), raw, size), 0);
        ASSERT_EQ(::listen(listener_.get(), 8), 0);
        ASSERT_EQ(::getsockname(listener_.get(), raw, &size), 0);
        client_ = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        ASSERT_EQ(::connect(client_.get(), raw, size), 0);
        served_ = Fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        ASSERT_TRUE(served_);
        self_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
        ASSERT_TRUE(self_);
    }
    Fd listener_, client_, served_, self_;
};

TEST_F(Served, ASocketSaysWhereItsPacketsArrive) {
    ASSERT_EQ(::send(client_.get(), "x", 1, 0), 1);
    char byte = 0;
    ASSERT_EQ(::recv(served_.get(), &byte, 1, 0), 1);
    const auto socket = ForeignSocket::open(self_, served_.get());
    ASSERT_TRUE(socket) << socket.error().to_string();
    EXPECT_TRUE(socket->incoming_cpu());
    EXPECT_FALSE(socket->is_listening());
    ASSERT_TRUE(socket->silence());
    EXPECT_LT(socket->silence()->count(), 5000);
    const auto listener = ForeignSocket::open(self_, listener_.get());
    ASSERT_TRUE(listener);
    EXPECT_TRUE(listener->is_listening());
    EXPECT_FALSE(listener->silence()) << "only an established connection has one";
}

TEST_F(Served, WhatIsNoSocketIsAnError) {
    const Fd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(ForeignSocket::open(self_, file.get()).error().code, ENOTSOCK);
    EXPECT_EQ(ForeignSocket::open(self_, 99999).error().code, EBADF);
    EXPECT_FALSE(ForeignSocket::open(Fd(), 0));
    const Fd unix_socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto socket = ForeignSocket::open(self_, unix_socket.get());
    ASSERT_TRUE(socket);
    EXPECT_FALSE(socket->silence());
}

TEST_F(Served, AProcessThatEndedHasNoSockets) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    const Fd handle(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    EXPECT_FALSE(ForeignSocket::open(handle, 0));
    const auto root = Root::open();
    ASSERT_TRUE(root);
    const std::array pids{static_cast<int>(child)};
    EXPECT_EQ(listeners_at_one_port(*root, pids), 0U);
    EXPECT_EQ(name_space(*root, std::to_string(child), "net"), 0U);
}

TEST_F(Served, ListenersAtOnePortAreCounted) {
    const auto root = Root::open();
    ASSERT_TRUE(root);
    const std::array pids{static_cast<int>(::getpid())};
    EXPECT_EQ(listeners_at_one_port(*root, pids), 1U);
    std::vector<Fd> own;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* raw = reinterpret_cast<sockaddr*>(&address);
    for (int i = 0; i < 3; ++i) {
        own.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const int on = 1;
        ASSERT_EQ(
            ::setsockopt(own[static_cast<std::size_t>(i)].get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)),
            0);
        ASSERT_EQ(::bind(own.back().get(), raw, size), 0);
        ASSERT_EQ(::listen(own.back().get(), 8), 0);
        ASSERT_EQ(::getsockname(own.back().get(), raw, &size), 0);
    }
    EXPECT_EQ(listeners_at_one_port(*root, pids), 3U);
}

TEST(Readers, TheOnlyThreadReadsAll) {
    const auto root = Root::open();
    ASSERT_TRUE(root);
    const pid_t child = ::fork();
    if (child == 0) {
        ::pause();
        ::_exit(0);
    }
    SocketReaders readers(*root, child);
    readers.look();
    EXPECT_EQ(readers.reader_of(7), child);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    SocketReaders gone(*root, child);
    gone.look();
    EXPECT_EQ(gone.reader_of(7), child) << "its run record is gone, too, so nothing is counted";
}

Nic nic(const std::string& name, unsigned ifindex, std::vector<std::string> lower) {
    Nic made;
    made.name = name;
    made.ifindex = ifindex;
    made.lower = std::move(lower);
    return made;
}

TEST(Subject, AnInterfaceStandsForWhatIsOnIt) {
    const std::vector<Nic> nics{nic("eth0", 2, {}), nic("eth1", 3, {}), nic("bond0.7", 5, {"bond0"}),
                                nic("bond0", 4, {"eth0", "eth1"})};
    EXPECT_EQ(devices_over(nics, "eth1"), (std::vector<unsigned>{3, 4, 5}));
    EXPECT_EQ(devices_over(nics, "bond0.7"), (std::vector<unsigned>{5}));
    EXPECT_TRUE(devices_over(nics, "eth9").empty());
    const std::vector<Nic> loop{nic("a", 1, {"b"}), nic("b", 2, {"a"})};
    EXPECT_EQ(devices_over(loop, "a"), (std::vector<unsigned>{1, 2}));
}

TEST(Subject, IsWhatTheWordStandsFor) {
    using Kind = LocalitySubject::Kind;
    const auto root = Root::open();
    ASSERT_TRUE(root);
    const std::vector<Nic> nics{nic("eth0", 2, {})};
    const auto status = json::parse(R"({"policies": [{"name": "web"}, {"name": "eth0"}],
        "processes": [{"policy": "web", "pid": 12}, {"policy": "db", "pid": 13}, {"policy": 5}, 7]})");
    const auto kind = [&](const std::string& word) { return read_subject(*root, word, nics, status)->kind; };
    EXPECT_EQ(kind(""), Kind::all);
    EXPECT_EQ(kind(std::to_string(::getpid())), Kind::process);
    EXPECT_EQ(kind("eth0"), Kind::nic) << "interfaces come first";
    EXPECT_EQ(kind("web"), Kind::policy);
    EXPECT_EQ(processes_under(status, "web"), (std::vector<int>{12}));
    EXPECT_FALSE(processes_under(status, "db"));
    EXPECT_FALSE(processes_under(json(), "web"));
    const auto error = [&](const std::string& word, const json& known) {
        return read_subject(*root, word, nics, known).error();
    };
    EXPECT_EQ(error("wep", status).code, ENOENT);
    EXPECT_NE(error("wep", status).message.find("did you mean 'web'?"), std::string::npos);
    EXPECT_EQ(error("wep", json()).code, ENOTCONN);
    EXPECT_EQ(error("no-such.service", json()).code, ENOENT);
    EXPECT_EQ(error("4194305", status).code, ESRCH);
    EXPECT_EQ(error("99999999999999", status).code, ESRCH);
}

} // namespace
} // namespace affinityctl
