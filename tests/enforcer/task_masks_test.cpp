// SPDX-License-Identifier: Apache-2.0
// Numbers that mean another task from one moment to the next.
#include "enforcer/task_masks.hpp"
#include "host/root.hpp"
#include "host/self.hpp"
#include "inventory/process_files.hpp"

#include <csignal>
#include <optional>

#include <gtest/gtest.h>
#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::enforcer {
namespace {

[[noreturn]] void wait_to_be_ended() {
    ::alarm(60);
    while (true)
        ::pause();
}

/// A child of this process, with a number of our choice if one is given.
pid_t make_child(pid_t number = 0) {
    clone_args arguments{};
    arguments.exit_signal = SIGCHLD;
    if (number != 0) {
        arguments.set_tid = reinterpret_cast<std::uintptr_t>(&number);
        arguments.set_tid_size = 1;
    }
    const auto pid = ::syscall(SYS_clone3, &arguments, sizeof arguments);
    if (pid == 0) wait_to_be_ended();
    return static_cast<pid_t>(pid);
}

void end(pid_t pid) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
}

class TaskMasksTest : public testing::Test {
  protected:
    void SetUp() override {
        ASSERT_GE(everywhere_.count(), 2U) << "a machine of one CPU cannot show it";
        pid_ = make_child();
        ASSERT_GT(pid_, 0);
    }
    void TearDown() override {
        if (pid_ > 0) end(pid_);
    }
    /// The child ends and another one gets its number, a clock tick later at least if asked for.
    void replace_child(bool a_tick_later) {
        const auto before = subject_.task.start_time;
        end(pid_);
        while (a_tick_later && host::ticks_since_boot() <= before)
            ::usleep(1000);
        pid_ = make_child(pid_);
        ASSERT_GT(pid_, 0) << std::generic_category().message(errno);
        ASSERT_EQ(pid_, subject_.task.tid);
    }
    [[nodiscard]] Applied write(const TaskMasks& masks) const {
        return masks.write(subject_, {subject_, everywhere_, one_, "p", {}, false});
    }
    /// Sets the mask of the process that has the number once the child was replaced.
    [[nodiscard]] TaskMasks late(bool with_handle) {
        TaskMasks::Kernel kernel;
        kernel.set = [this, with_handle](int tid, const CpuSet& cpus) {
            replace_child(!with_handle);
            return host::set_affinity(tid, cpus);
        };
        if (!with_handle) kernel.hold = [](int) { return host::TaskHandle::open(-1); };
        subject_ = {inventory::read_thread(root_, pid_, pid_).value()->id, pid_, "child"};
        return TaskMasks(root_, std::move(kernel));
    }
    host::Root root_ = *host::Root::open();
    const CpuSet everywhere_ = *host::get_affinity(0);
    const CpuSet one_{everywhere_.first()};
    machine::TaskMask subject_;
    pid_t pid_ = 0;
};

TEST_F(TaskMasksTest, ATaskThatGotTheNumberInBetweenHasItsOwnMaskBackAtOnce) {
    for (const bool with_handle : {true, false}) {
        const auto applied = write(late(with_handle));
        EXPECT_EQ(applied.outcome, Outcome::reused) << to_string(applied.outcome) << with_handle;
        EXPECT_EQ(*host::get_affinity(pid_), everywhere_) << with_handle;
        EXPECT_TRUE(has_gone(applied.outcome));
        EXPECT_FALSE(took_effect(applied.outcome));
    }
}

TEST_F(TaskMasksTest, ATaskThatEndsInBetweenIsGone) {
    TaskMasks::Kernel kernel;
    kernel.set = [this](int tid, const CpuSet& cpus) {
        const int code = host::set_affinity(tid, cpus);
        end(std::exchange(pid_, 0));
        return code;
    };
    subject_ = {inventory::read_thread(root_, pid_, pid_).value()->id, pid_, "child"};
    EXPECT_EQ(write(TaskMasks(root_, std::move(kernel))).outcome, Outcome::gone);
}

TEST_F(TaskMasksTest, ASuccessorThatWasNotHitIsLeftAlone) {
    TaskMasks::Kernel kernel;
    kernel.set = [this](int tid, const CpuSet& cpus) {
        const int code = host::set_affinity(tid, cpus);
        replace_child(false);
        return code;
    };
    subject_ = {inventory::read_thread(root_, pid_, pid_).value()->id, pid_, "child"};
    EXPECT_EQ(write(TaskMasks(root_, std::move(kernel))).outcome, Outcome::gone);
    EXPECT_EQ(*host::get_affinity(pid_), everywhere_);
}

TEST_F(TaskMasksTest, AHandleKnowsItsTaskFromOneOfTheSameNumber) {
    subject_ = {inventory::read_thread(root_, pid_, pid_).value()->id, pid_, "child"};
    const auto handle = host::TaskHandle::open(pid_);
    EXPECT_EQ(handle.state(), host::TaskHandle::State::there);
    replace_child(false);
    EXPECT_EQ(handle.state(), host::TaskHandle::State::gone);
    EXPECT_EQ(host::TaskHandle::open(pid_).state(), host::TaskHandle::State::there);
    EXPECT_EQ(host::TaskHandle::open(-1).state(), host::TaskHandle::State::unknown);
}

} // namespace
} // namespace affinityd::enforcer
