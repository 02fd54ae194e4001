// SPDX-License-Identifier: Apache-2.0
#include "enforcer/enforcer.hpp"
#include "host/root.hpp"
#include "host/scheduler.hpp"
#include "inventory/process_files.hpp"
#include "support/tree.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::enforcer {
namespace {

using machine::FlowTable;
using machine::IrqMask;
using machine::Setting;
using machine::SteeringMask;
using machine::TaskMask;

/// A child that waits to be ended.
class Child {
  public:
    Child() : pid_(::fork()) {
        if (pid_ == 0) {
            ::alarm(60);
            ::pause();
            ::_exit(0);
        }
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child() { end(); }
    void end() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = 0;
    }
    [[nodiscard]] TaskMask subject(const host::Root& root) const {
        return {inventory::read_thread(root, pid_, pid_).value()->id, pid_, "child"};
    }

  private:
    pid_t pid_;
};

class RealTest : public testing::Test {
  protected:
    host::Root root_ = *host::Root::open();
    std::unique_ptr<Enforcer> enforcer_ = make_real_enforcer(root_);
    Child child_;
};

TEST_F(RealTest, AMaskIsWrittenAndReadBack) {
    const auto subject = child_.subject(root_);
    const auto before = *enforcer_->present(subject);
    ASSERT_TRUE(before);
    const CpuSet one{before->cpus().first()};
    const auto applied = enforcer_->apply({subject, *before, one, "p", {}, false});
    EXPECT_EQ(applied.outcome, Outcome::done);
    EXPECT_EQ(applied.granted, Setting{one});
    EXPECT_EQ(*enforcer_->present(subject), Setting{one});
    EXPECT_EQ(enforcer_->apply({subject, one, *before, "p", {}, true}).outcome, Outcome::done);
    EXPECT_EQ(*enforcer_->present(subject), *before);
}

TEST_F(RealTest, LessThanAskedForIsSaid) {
    const auto online = *host::get_affinity(0);
    CpuSet more = online;
    more.insert(online.last() + 1); // does not exist: the kernel cuts it away
    const auto applied = enforcer_->apply({child_.subject(root_), online, more, "p", {}, false});
    EXPECT_EQ(applied.outcome, Outcome::narrowed);
    EXPECT_EQ(applied.granted, Setting{online});
}

TEST_F(RealTest, WhatCannotBeIsAnOutcome) {
    auto subject = child_.subject(root_);
    const CpuSet nowhere{host::get_affinity(0)->last() + 100};
    EXPECT_EQ(enforcer_->apply({subject, {}, nowhere, "p", {}, false}).outcome, Outcome::no_cpu);
    auto other = subject;
    other.task.start_time += 1; // the number belongs to another task by now
    EXPECT_EQ(*enforcer_->present(other), std::nullopt);
    EXPECT_EQ(enforcer_->apply({other, {}, CpuSet{0}, "p", {}, true}).outcome, Outcome::gone);
    child_.end();
    EXPECT_EQ(enforcer_->apply({subject, {}, CpuSet{0}, "p", {}, false}).outcome, Outcome::gone);
    EXPECT_EQ(*enforcer_->present(subject), std::nullopt);
    EXPECT_EQ(
        enforcer_->apply({IrqMask{"", "no-such-handler", 0, 4000}, {}, CpuSet{0}, "p", {}, false}).outcome,
        Outcome::gone);
    const SteeringMask steering{"no", machine::Direction::tx, 0, "no-such-nic"};
    EXPECT_EQ(enforcer_->apply({steering, {}, CpuSet{0}, "p", {}, false}).outcome, Outcome::gone);
    EXPECT_EQ(*enforcer_->present(steering), std::nullopt);
    const FlowTable table{"no", 0, "no-such-nic"};
    EXPECT_EQ(enforcer_->apply({table, {}, machine::FlowCount{64}, "p", {}, false}).outcome, Outcome::gone);
    EXPECT_EQ(*enforcer_->present(table), std::nullopt);
}

TEST_F(RealTest, ARecycledNumberIsNotMovedInThePlaceOfAnother) {
    const auto subject = child_.subject(root_);
    const auto before = *host::get_affinity(subject.task.tid);
    ASSERT_GE(before.count(), 2U) << "a machine of one CPU cannot show it";
    auto dead = subject;
    dead.task.start_time -= 1; // a task that had the number before
    for (const bool restore : {false, true}) {
        const auto applied = enforcer_->apply({dead, before, CpuSet{before.first()}, "p", {}, restore});
        EXPECT_EQ(applied.outcome, Outcome::gone);
        EXPECT_EQ(*host::get_affinity(subject.task.tid), before) << "restore: " << restore;
    }
    auto elsewhere = subject;
    elsewhere.pid = ::getpid(); // no thread of this process
    EXPECT_EQ(enforcer_->apply({elsewhere, before, CpuSet{before.first()}, "p", {}, false}).outcome,
              Outcome::gone);
    EXPECT_EQ(*host::get_affinity(subject.task.tid), before);
}

TEST_F(RealTest, WithoutDescriptorsNothingIsTakenForGoneOrChanged) {
    const auto subject = child_.subject(root_);
    const auto before = *host::get_affinity(subject.task.tid);
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlimit none{3, limit.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    const auto present = enforcer_->present(subject);
    const auto applied = enforcer_->apply({subject, before, CpuSet{before.first()}, "p", {}, false});
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_FALSE(present);
    EXPECT_EQ(applied.outcome, Outcome::failed);
    EXPECT_EQ(applied.code, EMFILE);
    EXPECT_EQ(*host::get_affinity(subject.task.tid), before);
}

/// struct sched_attr, sched_setattr(2); the C library has none.
struct DeadlineAttributes {
    std::uint32_t size = sizeof(DeadlineAttributes), policy = 6; // SCHED_DEADLINE
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t runtime_ns = 1'000'000, deadline_ns = 100'000'000, period_ns = 100'000'000;
};

TEST_F(RealTest, ADeadlineTaskIsToldApart) {
    const auto online = *host::get_affinity(0);
    ASSERT_GE(online.count(), 2U) << "a machine of one CPU cannot show it";
    const auto subject = child_.subject(root_);
    const DeadlineAttributes attributes;
    ASSERT_EQ(::syscall(SYS_sched_setattr, subject.task.tid, &attributes, 0), 0)
        << std::generic_category().message(errno);
    const auto applied = enforcer_->apply({subject, online, CpuSet{online.first()}, "p", {}, false});
    EXPECT_EQ(applied.outcome, Outcome::deadline) << to_string(applied.outcome);
    EXPECT_EQ(*host::get_affinity(subject.task.tid), online);
}

TEST(Enforcers, ARecordedMachineCannotBeChanged) {
    const test::Tree tree;
    tree.folder("proc");
    const auto root = host::Root::open(tree.path());
    ASSERT_TRUE(root);
    EXPECT_EQ(make_real_enforcer(*root), nullptr);
    const auto recording = make_recording_enforcer(*root);
    EXPECT_FALSE(recording->acts());
    EXPECT_EQ(recording->apply({IrqMask{"", "x", 0, 1}, {}, CpuSet{0}, "p", {}, false}).outcome,
              Outcome::done);
}

} // namespace
} // namespace affinityd::enforcer
