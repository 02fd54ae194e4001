// SPDX-License-Identifier: Apache-2.0
#include "enforcer/enforcer.hpp"
#include "enforcer/irq_lookup.hpp"
#include "host/root.hpp"
#include "host/scheduler.hpp"
#include "inventory/scan.hpp"
#include "planner/flow_counts.hpp"
#include "support/tree.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::enforcer {
namespace {

using planner::IrqMask;
using planner::SteeringMask;
using planner::TaskMask;

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
        return {inventory::read_thread(root, pid_, pid_)->id, pid_, "child"};
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
    const auto before = enforcer_->present(subject);
    ASSERT_TRUE(before);
    const CpuSet one{before->first()};
    const auto applied = enforcer_->apply({subject, *before, one, "p", "test", false});
    EXPECT_EQ(applied.outcome, Outcome::done);
    EXPECT_EQ(applied.granted, one);
    EXPECT_EQ(*enforcer_->present(subject), one);
    EXPECT_EQ(enforcer_->apply({subject, one, *before, "p", "back", true}).outcome, Outcome::done);
    EXPECT_EQ(*enforcer_->present(subject), *before);
}

TEST_F(RealTest, LessThanAskedForIsSaid) {
    const auto online = *host::get_affinity(0);
    CpuSet more = online;
    more.insert(online.last() + 1); // does not exist: the kernel cuts it away
    const auto applied = enforcer_->apply({child_.subject(root_), online, more, "p", "test", false});
    EXPECT_EQ(applied.outcome, Outcome::narrowed);
    EXPECT_EQ(applied.granted, online);
}

TEST_F(RealTest, WhatCannotBeIsAnOutcome) {
    auto subject = child_.subject(root_);
    const CpuSet nowhere{host::get_affinity(0)->last() + 100};
    EXPECT_EQ(enforcer_->apply({subject, {}, nowhere, "p", "test", false}).outcome, Outcome::no_cpu);
    auto other = subject;
    other.task.start_time += 1; // the number belongs to another task by now
    EXPECT_EQ(enforcer_->present(other), std::nullopt);
    EXPECT_EQ(enforcer_->apply({other, {}, CpuSet{0}, "p", "back", true}).outcome, Outcome::gone);
    child_.end();
    EXPECT_EQ(enforcer_->apply({subject, {}, CpuSet{0}, "p", "test", false}).outcome, Outcome::gone);
    EXPECT_EQ(enforcer_->present(subject), std::nullopt);
    EXPECT_EQ(
        enforcer_->apply({IrqMask{"", "no-such-handler", 4000}, {}, CpuSet{0}, "p", "test", false}).outcome,
        Outcome::gone);
    EXPECT_EQ(enforcer_->apply({SteeringMask{"no", "no-such-nic", "tx-0"}, {}, CpuSet{0}, "p", "test", false})
                  .outcome,
              Outcome::gone);
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
    const auto applied = enforcer_->apply({subject, online, CpuSet{online.first()}, "p", "test", false});
    EXPECT_EQ(applied.outcome, Outcome::deadline) << to_string(applied.outcome);
    EXPECT_EQ(*host::get_affinity(subject.task.tid), online);
}

TEST(Enforcers, ARecordedMachineCannotBeChanged) {
    const test::Tree tree;
    tree.folder("proc");
    const auto root = host::Root::open(tree.path());
    ASSERT_TRUE(root);
    EXPECT_EQ(make_real_enforcer(*root), nullptr);
    const auto recording = make_recording_enforcer();
    EXPECT_FALSE(recording->acts());
    EXPECT_EQ(recording->apply({IrqMask{"", "x", 1}, {}, CpuSet{0}, "p", "test", false}).outcome,
              Outcome::done);
}

TEST(IrqLookup, NumbersAreFoundAgainByHandlerAndDevice) {
    const test::Tree tree;
    tree.folder("proc/irq/40/eth0-TxRx-0");
    tree.folder("proc/irq/41/eth0-TxRx-1");
    tree.folder("proc/irq/50/net1-TxRx-0");
    tree.folder("proc/irq/60/net1-TxRx-0"); // another device's, of the same name
    tree.file("sys/devices/a/msi_irqs/40", "msix\n");
    tree.file("sys/devices/a/msi_irqs/41", "msix\n");
    tree.file("sys/devices/b/msi_irqs/60", "msix\n");
    tree.folder("sys/devices/b/virtio1");
    const auto root = *host::Root::open(tree.path());
    EXPECT_EQ(find_irq(root, {"devices/a", "eth0-TxRx-0", 40}), 40U);
    EXPECT_EQ(find_irq(root, {"devices/a", "eth0-TxRx-1", 40}), 41U)
        << "the number was given to another queue";
    EXPECT_EQ(find_irq(root, {"devices/b", "net1-TxRx-0", 50}), 60U) << "50 belongs to another device";
    EXPECT_EQ(find_irq(root, {"devices/b/virtio1", "net1-TxRx-0", 50}), 60U) << "vectors hang on the parent";
    EXPECT_EQ(find_irq(root, {"devices/a", "gone", 40}), std::nullopt);
    EXPECT_EQ(find_irq(root, {"", "eth0-TxRx-1", 7}), 41U);
}

TEST(IrqLookup, SteeringFollowsARenamedInterface) {
    const test::Tree tree;
    tree.folder("sys/devices/a/net/new0");
    tree.folder("proc");
    const auto root = *host::Root::open(tree.path());
    EXPECT_EQ(steering_path(root, {"devices/a", "old0", "tx-1"}), "class/net/new0/queues/tx-1/xps_cpus");
    EXPECT_EQ(steering_path(root, planner::queue_flows("devices/a", "old0", 3)),
              "class/net/new0/queues/rx-3/rps_flow_cnt");
    EXPECT_EQ(steering_path(root, {"veth0", "veth0", "rx-0"}), "class/net/veth0/queues/rx-0/rps_cpus");
}

} // namespace
} // namespace affinityd::enforcer
