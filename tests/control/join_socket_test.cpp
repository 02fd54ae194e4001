// SPDX-License-Identifier: Apache-2.0
// The socket for joins with real clients, one of them another user's.
#include "control/joins.hpp"
#include "join_clients.hpp"
#include "support/nobody.hpp"
#include "support/sent_file.hpp"
#include "support/tree.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::control {
namespace {

using test::connect_join;
using test::join_request;

class JoinSocketTest : public testing::Test {
  protected:
    void SetUp() override { serve(); }
    void TearDown() override {
        socket_.reset();
        sd_event_unref(event_);
    }
    void serve() {
        ASSERT_TRUE(event_ != nullptr || sd_event_new(&event_) >= 0);
        socket_.reset();
        auto started = JoinSocket::start(event_, path(), joining_);
        ASSERT_TRUE(started) << started.error().to_string();
        socket_ = std::move(*started);
        ::chmod(tree_.path().c_str(), 0755);
    }
    [[nodiscard]] std::string path() const { return join_socket_path(tree_.path()); }
    /// From Linux 6.5.
    [[nodiscard]] bool can_hold_peers() const {
        const auto fd = connect_join(path());
        int process = -1;
        socklen_t size = sizeof process;
        const bool can = ::getsockopt(fd.get(), SOL_SOCKET, 77, &process, &size) == 0; // SO_PEERPIDFD
        const host::Fd closed(process);
        return can;
    }
    void settle() {
        while (sd_event_run(event_, 20'000) > 0) {
        }
    }
    /// How a child ended that is served meanwhile; -1: it has not, and is ended.
    int end_of(pid_t child) {
        for (int turn = 0; turn < 1000; ++turn) {
            if (int ended = -1; ::waitpid(child, &ended, WNOHANG) == child) return ended;
            sd_event_run(event_, 10'000);
        }
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        return -1;
    }
    /// The answer to another process of this user; below 0: there is none.
    int status_of_child() {
        const pid_t child = ::fork();
        if (child == 0) {
            const auto fd = connect_join(path());
            const auto request = join_request();
            ::send(fd.get(), &request, sizeof request, MSG_NOSIGNAL);
            ::fcntl(fd.get(), F_SETFL, 0);
            affinityd_join_reply reply{};
            const bool is_answered = ::recv(fd.get(), &reply, sizeof reply, 0) == sizeof reply;
            ::_exit(is_answered && reply.status == 1 ? 1 : 2);
        }
        const int ended = end_of(child);
        return WIFEXITED(ended) ? WEXITSTATUS(ended) : -1;
    }
    /// The answer; no value: there is none.
    static std::optional<affinityd_join_reply> read(const host::Fd& fd) {
        affinityd_join_reply reply{};
        if (::recv(fd.get(), &reply, sizeof reply, MSG_DONTWAIT) != sizeof reply) return std::nullopt;
        return reply;
    }
    static bool is_closed(const host::Fd& fd) {
        char byte = 0;
        return ::recv(fd.get(), &byte, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET;
    }
    std::optional<affinityd_join_reply> ask(const void* packet, std::size_t size) {
        const auto fd = connect_join(path());
        ::send(fd.get(), packet, size, MSG_NOSIGNAL);
        settle();
        return read(fd);
    }
    int status(const affinityd_join_request& request) {
        const auto reply = ask(&request, sizeof request);
        return reply ? reply->status : -ENOMSG;
    }
    affinityd::test::Tree tree_;
    test::FakeJoining joining_;
    sd_event* event_ = nullptr;
    std::unique_ptr<JoinSocket> socket_;
};

TEST_F(JoinSocketTest, AnswersWithWhatTheManagerSays) {
    const auto request = join_request();
    const auto reply = ask(&request, sizeof request);
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, 1);
    EXPECT_STREQ(reply->policy, "server");
    EXPECT_STREQ(reply->slot, "io");
    ASSERT_EQ(joining_.asked.size(), 1U);
    EXPECT_EQ(joining_.asked[0].pid, ::getpid());
    EXPECT_EQ(joining_.asked[0].tid, ::getpid());
    EXPECT_TRUE(joining_.were_alive[0]);
    EXPECT_EQ(joining_.last_user, ::getuid());
}

TEST_F(JoinSocketTest, IsOpenToAllUsersAndLeavesNothingBehind) {
    struct stat file {};
    ASSERT_EQ(::stat(path().c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 07777, 0666U);
    socket_.reset();
    EXPECT_NE(::stat(path().c_str(), &file), 0);
}

TEST_F(JoinSocketTest, WhoAsksIsWhatTheKernelSays) {
    const pid_t child = ::fork();
    if (child == 0) {
        if (::setgid(affinityd::test::nobody) != 0 || ::setuid(affinityd::test::nobody) != 0) ::_exit(2);
        const auto fd = connect_join(path());
        auto request = join_request();
        request.pid = request.tid = 1;
        ::send(fd.get(), &request, sizeof request, MSG_NOSIGNAL);
        ::fcntl(fd.get(), F_SETFL, 0);
        affinityd_join_reply reply{};
        ::_exit(::recv(fd.get(), &reply, sizeof reply, 0) == sizeof reply && reply.status == 1 ? 0 : 3);
    }
    EXPECT_EQ(end_of(child), 0);
    ASSERT_EQ(joining_.asked.size(), 1U);
    EXPECT_EQ(joining_.asked[0].pid, child);
    EXPECT_EQ(joining_.last_user, affinityd::test::nobody);
}

TEST_F(JoinSocketTest, AnotherProcessOverTheSameConnectionIsRefused) {
    const auto fd = connect_join(path());
    const pid_t child = ::fork();
    if (child == 0) {
        const auto request = join_request();
        ::_exit(::send(fd.get(), &request, sizeof request, MSG_NOSIGNAL) == sizeof request ? 0 : 2);
    }
    int ended = 0;
    ::waitpid(child, &ended, 0);
    ASSERT_EQ(ended, 0);
    settle();
    const auto reply = read(fd);
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, -EPERM);
    EXPECT_TRUE(joining_.asked.empty());
}

TEST_F(JoinSocketTest, WhoHasEndedMeanwhileIsNotAlive) {
    const pid_t child = ::fork();
    if (child == 0) {
        const auto fd = connect_join(path());
        const auto request = join_request();
        ::_exit(::send(fd.get(), &request, sizeof request, MSG_NOSIGNAL) == sizeof request ? 0 : 2);
    }
    int ended = 0;
    ::waitpid(child, &ended, 0);
    ASSERT_EQ(ended, 0);
    settle();
    for (const bool was_alive : joining_.were_alive)
        EXPECT_FALSE(was_alive);
}

TEST_F(JoinSocketTest, NorIsOneWhoseConnectionAnotherHoldsOpen) {
    const auto fd = test::join_client();
    const pid_t child = ::fork();
    if (child == 0) { // it connects what its parent has, too
        const auto request = join_request();
        const bool is_sent = connect_join(path(), fd) &&
                             ::send(fd.get(), &request, sizeof request, MSG_NOSIGNAL) == sizeof request;
        ::_exit(is_sent ? 0 : 2);
    }
    int ended = 0;
    ::waitpid(child, &ended, 0);
    ASSERT_EQ(ended, 0);
    settle();
    EXPECT_TRUE(read(fd) || is_closed(fd)) << "it was looked at";
    const bool was_taken_for_alive = !joining_.were_alive.empty() && joining_.were_alive.front();
    EXPECT_FALSE(was_taken_for_alive && can_hold_peers());
}

TEST_F(JoinSocketTest, AnyBytesGetAClearAnswer) {
    const std::array<char, 1000> bytes{'x'};
    for (const std::size_t size : {1, 63, 64, 65, 128, 1000}) {
        const auto reply = ask(bytes.data(), size);
        ASSERT_TRUE(reply) << size;
        EXPECT_EQ(reply->status, -EBADMSG) << size;
    }
    EXPECT_EQ(status(join_request()), 1) << "and the next is served";
}

TEST_F(JoinSocketTest, DescriptorsBesideAMessageAreNotTaken) {
    const host::Fd sent(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    const auto fd = connect_join(path());
    const auto request = join_request();
    ASSERT_GT(test::send_with_file(fd.get(), &request, sizeof request, sent.get()), 0);
    settle();
    // The answer, or a reset: the packet was never taken.
    EXPECT_EQ(read(fd).value_or(affinityd_join_reply{.status = -EPERM}).status, -EPERM);
    EXPECT_TRUE(joining_.asked.empty());
}

TEST_F(JoinSocketTest, AUserWhoseBudgetIsSpentIsDisconnected) {
    joining_.is_spent = true;
    EXPECT_EQ(status(join_request()), -ENOMSG);
    EXPECT_TRUE(joining_.asked.empty());
}

TEST_F(JoinSocketTest, WhoLeavesAtOnceIsNoTrouble) {
    for (int i = 0; i < 50; ++i)
        static_cast<void>(connect_join(path()));
    for (int i = 0; i < 50; ++i) {
        const auto fd = connect_join(path());
        const auto request = join_request();
        ::send(fd.get(), &request, sizeof request, MSG_NOSIGNAL);
    }
    settle();
    EXPECT_EQ(status(join_request()), 1);
}

TEST_F(JoinSocketTest, APathThatIsTooLongIsAnError) {
    EXPECT_FALSE(JoinSocket::start(event_, "/" + std::string(200, 'x'), joining_));
    EXPECT_FALSE(JoinSocket::start(event_, tree_.path("no/such/folder"), joining_));
}

} // namespace
} // namespace affinityd::control
