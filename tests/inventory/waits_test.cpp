// SPDX-License-Identifier: Apache-2.0
#include "host/fd.hpp"
#include "inventory/waits.hpp"
#include "recorded.hpp"

#include <array>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::inventory {
namespace {

using host::Fd;

TEST(Waits, MembersOfAnEpollSetHaveDescriptorsAndInodes) {
    const auto found = parse_epoll_members("pos:\t0\nflags:\t02\nmnt_id:\t15\nino:\t1057\n"
                                           "tfd:        5 events:       19 data:  5  pos:0 ino:1f2e sdev:8\n"
                                           "tfd:        7 events:       19 data:                7\n"
                                           "tfd: x events: 19\n"
                                           "tfd:       9");
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[0].descriptor, 5);
    EXPECT_EQ(found[0].inode, 0x1f2eU);
    EXPECT_EQ(found[1].descriptor, 7);
    EXPECT_EQ(found[1].inode, 0U);
    EXPECT_EQ(found[2].descriptor, 9);
}

TEST(Waits, AThreadThatRunsWaitsInNoCall) {
    EXPECT_EQ(parse_waiting_call("232 0x8 0x5600 0x200 0xffffffffffffffff 0x0 0x0 0x7ffc 0x7f1e\n").number,
              232);
    EXPECT_EQ(parse_waiting_call("232 0x8 0x5600 0x200 0x0 0x0 0x0 0x7ffc 0x7f1e\n").first, 8U);
    for (const auto* text : {"running\n", "-1 0x7ffc 0x7f1e\n", "", "232", "232 8"})
        EXPECT_EQ(parse_waiting_call(text).number, -1) << text;
}

Fd listener() {
    Fd one(::socket(AF_INET, SOCK_STREAM, 0));
    EXPECT_EQ(::listen(one.get(), 5), 0); // on a port of the kernel's choice
    return one;
}

std::uint64_t inode(const Fd& fd) {
    struct stat found {};
    EXPECT_EQ(::fstat(fd.get(), &found), 0);
    return found.st_ino;
}

Fd set_of(const Fd& member) {
    Fd set(::epoll_create1(0));
    epoll_event event{};
    event.events = EPOLLIN;
    EXPECT_EQ(::epoll_ctl(set.get(), EPOLL_CTL_ADD, member.get(), &event), 0);
    return set;
}

void wait_on(const Fd& set) {
    epoll_event event{};
    while (true)
        ::epoll_wait(set.get(), &event, 1, -1);
}

/// A child that waits; ended at the latest here.
class Server {
  public:
    explicit Server(const std::function<void()>& life) : pid_(::fork()) {
        if (pid_ != 0) return;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        life();
        ::_exit(0);
    }
    ~Server() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    Server(const Server&) = delete;
    Server& operator=(const Server&) = delete;

    /// Once so many waits are seen, or after a while.
    [[nodiscard]] ListenerUse use(const std::set<std::uint64_t>& listeners, std::size_t waits) const {
        auto root = host::Root::open();
        Result<ListenerUse> found = ListenerUse();
        for (int i = 0; i < 2000 && (i == 0 || found->waits.size() < waits); ++i) {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            found = read_listener_use(*root, pid_, listeners);
            EXPECT_TRUE(found);
        }
        return *found;
    }
    [[nodiscard]] int pid() const { return pid_; }

  private:
    int pid_;
};

TEST(Waits, AProcessWaitsOnTheListenerInItsEpollSetAndNotOnThoseThatItOnlyHolds) {
    const auto mine = listener(), others = listener();
    const Server server([&] { wait_on(set_of(mine)); });
    const auto use = server.use({inode(mine), inode(others)}, 1);
    EXPECT_EQ(use.held.size(), 2U);
    ASSERT_EQ(use.waits.size(), 1U);
    EXPECT_EQ(use.waits[0].listener, inode(mine));
    EXPECT_EQ(use.waits[0].thread, server.pid());
    EXPECT_TRUE(use.waits[0].is_sure);
    auto root = host::Root::open();
    EXPECT_TRUE(holds_socket(*root, server.pid(), use.held.at(inode(mine)), inode(mine)));
    EXPECT_FALSE(holds_socket(*root, server.pid(), use.held.at(inode(mine)), inode(others)));
}

TEST(Waits, EachThreadWaitsOnTheListenerOfItsOwnSet) {
    const auto one = listener(), other = listener();
    const Server server([&] {
        std::jthread second([&] { wait_on(set_of(other)); });
        wait_on(set_of(one));
    });
    const auto use = server.use({inode(one), inode(other)}, 2);
    ASSERT_EQ(use.waits.size(), 2U);
    for (const auto& wait : use.waits)
        EXPECT_EQ(wait.thread == server.pid(), wait.listener == inode(one));
}

TEST(Waits, AListenerThatWasClosedWhileItsDescriptorIsAnothersIsNotWaitedOn) {
    const auto mine = listener(), others = listener();
    const Server server([&] {
        const auto set = set_of(mine); // the parent has it open, so it stays in the set
        ::dup2(others.get(), mine.get());
        wait_on(set);
    });
    const auto use = server.use({inode(mine), inode(others)}, 0);
    for (const auto& wait : use.waits)
        EXPECT_NE(wait.listener, inode(others));
}

TEST(Waits, InAcceptItIsSureAndInPollItIsNot) {
    const auto mine = listener();
    const Server accepting([&] { ::accept(mine.get(), nullptr, nullptr); });
    const auto sure = accepting.use({inode(mine)}, 1);
    ASSERT_EQ(sure.waits.size(), 1U);
    EXPECT_TRUE(sure.waits[0].is_sure);
    const Server polling([&] {
        pollfd one{mine.get(), POLLIN, 0};
        ::poll(&one, 1, -1);
    });
    const auto unsure = polling.use({inode(mine)}, 1);
    ASSERT_EQ(unsure.waits.size(), 1U);
    EXPECT_FALSE(unsure.waits[0].is_sure);
    const Server master([] { ::pause(); });
    EXPECT_TRUE(master.use({inode(mine)}, 0).waits.empty());
    EXPECT_EQ(master.use({inode(mine)}, 0).held.size(), 1U);
}

} // namespace
} // namespace affinityd::inventory
