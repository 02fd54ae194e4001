// SPDX-License-Identifier: Apache-2.0
#include "host/scheduler.hpp"

#include <cerrno>
#include <thread>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::host {
namespace {

// In a child, so that the rest of the tests run as they would.
TEST(Priority, IsTakenAndNotPassedOn) {
    const int child = ::fork();
    if (child == 0) {
        const int code = prefer_low_latency();
        if (code != 0) ::_exit(code == EPERM && ::geteuid() != 0 ? 0 : 1);
        if (::getpriority(PRIO_PROCESS, 0) != -10) ::_exit(2);
        const int grandchild = ::fork();
        if (grandchild == 0) ::_exit(::getpriority(PRIO_PROCESS, 0) == 0 ? 0 : 3);
        int status = 0;
        ::waitpid(grandchild, &status, 0);
        ::_exit(WEXITSTATUS(status));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Priority, WhoGivesWayIsOneThreadOnlyAndHasItsShare) {
    std::thread([] {
        const int before = ::getpriority(PRIO_PROCESS, 0); // the whole test may run at another one
        ASSERT_EQ(give_way(), 0);
        EXPECT_EQ(::sched_getscheduler(0), SCHED_BATCH);
        EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), before);
    }).join();
    EXPECT_EQ(::sched_getscheduler(0), SCHED_OTHER);
}

TEST(Priority, WhoGivesWayAlreadyHasNoMoreThanBefore) {
    std::thread([] {
        ASSERT_EQ(::setpriority(PRIO_PROCESS, 0, 19), 0);
        EXPECT_EQ(give_way(), 0);
        EXPECT_EQ(::sched_getscheduler(0), SCHED_BATCH);
        EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), 19);
    }).join();
    std::thread([] {
        const sched_param none{};
        ASSERT_EQ(::sched_setscheduler(0, SCHED_IDLE, &none), 0);
        EXPECT_EQ(give_way(), 0);
        EXPECT_EQ(::sched_getscheduler(0), SCHED_IDLE);
    }).join();
}

} // namespace
} // namespace affinityd::host
