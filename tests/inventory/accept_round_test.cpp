// SPDX-License-Identifier: Apache-2.0
#include "accepting.hpp"
#include "inventory/accept_round.hpp"
#include "support/nobody.hpp"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <set>

namespace affinityd::inventory {
namespace {

using affinityd::test::nobody;
using std::chrono::seconds;

class Round : public Accepting {
  protected:
    /// A process that waits for connections of its own listener.
    void start(unsigned user = 0, int listeners = 1) {
        std::vector<int> files;
        for (int i = 0; i < listeners; ++i)
            files.push_back(listener(0));
        children_.push_back(std::make_unique<Forked>([&] {
            if (user != 0 && ::setuid(user) != 0) ::_exit(1);
            wait_for_ever(watch(files));
        }));
        const int pid = children_.back()->pid();
        ids_.push_back(id(pid));
        read_until(pid, [&](const auto& one) {
            return one.sockets.size() == static_cast<std::size_t>(listeners) &&
                   read_real_user(root, pid) == user;
        });
        for (const int fd : files)
            ::close(fd);
    }
    [[nodiscard]] std::vector<AcceptSockets> look(AcceptRound& round) {
        return round.read(ids_, std::stop_token());
    }
    std::vector<std::unique_ptr<Forked>> children_;
    std::vector<TaskId> ids_;
};

TEST_F(Round, EachListenerKnowsWhoElseListensInItsNamespace) {
    start();
    start();
    AcceptRound round(root, reader, {});
    const auto found = look(round);
    ASSERT_EQ(found.size(), 2U);
    for (const auto& one : found) {
        ASSERT_EQ(one.sockets.size(), 1U);
        EXPECT_EQ(one.held, std::vector{one.sockets[0].inode});
        ASSERT_TRUE(one.around);
        EXPECT_EQ(one.around->at_address_of(one.sockets[0].inode), one.held);
    }
}

TEST_F(Round, AUserWithManyProcessesLeavesTheOthersTheirTurn) {
    for (int i = 0; i < 5; ++i)
        start();
    start(nobody);
    const auto other = ids_.back();
    AcceptRound round(root, reader, {.processes = 2, .listeners_of_user = 10, .of_user = seconds(60)});
    std::set<TaskId> seen;
    for (int i = 0; i < 5; ++i) {
        const auto found = look(round);
        ASSERT_EQ(found.size(), 2U);
        EXPECT_NE(std::ranges::find(found, other, &AcceptSockets::process), found.end());
        for (const auto& one : found)
            seen.insert(one.process);
    }
    EXPECT_EQ(seen.size(), 6U) << "and all have it one after the other";
}

TEST_F(Round, WhoseProcessesTakeTooLongHasThemLeft) {
    start();
    start();
    AcceptRound round(root, reader, {.processes = 10, .listeners_of_user = 10, .of_user = seconds(0)});
    const auto found = look(round);
    ASSERT_EQ(found.size(), 2U);
    for (const auto& one : found) {
        EXPECT_EQ(one.code, EDQUOT);
        EXPECT_TRUE(one.sockets.empty());
    }
}

TEST_F(Round, OfVeryManyListenersOfAUserTheFirstAreReadAndTheOthersCounted) {
    start(0, 3);
    start(0, 3);
    AcceptRound round(root, reader, {.processes = 10, .listeners_of_user = 4, .of_user = seconds(60)});
    const auto found = look(round);
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0].sockets.size() + found[1].sockets.size(), 4U);
    EXPECT_EQ(found[0].left_out + found[1].left_out, 2U);
}

} // namespace
} // namespace affinityd::inventory
