// SPDX-License-Identifier: Apache-2.0
#include "accounting/passive_cost.hpp"
#include "host/root.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace affinityd::accounting {
namespace {

constexpr double million = 1e6;

/// A machine of files: processes with their CPU time, interfaces with their counters.
class PassiveCosts : public testing::Test {
  protected:
    PassiveCosts() {
        tree_.folder("proc");
        tree_.folder("sys");
        tree_.file("sys/fs/cgroup/web.service/inner/cpu.stat", "usage_usec 7000000\n");
        root_.emplace(host::Root::open(tree_.path()).value());
        costs_.emplace(*root_);
        counter("eth0", 0);
        counter("eth1", 0);
        load({web()});
    }

    void load(std::vector<CostSubject> subjects) { subjects_ = std::move(subjects); }

    void counter(const std::string& nic, double bytes) {
        tree_.file("sys/class/net/" + nic + "/statistics/rx_bytes", fmt::format("{:.0f}\n", bytes / 4));
        tree_.file("sys/class/net/" + nic + "/statistics/tx_bytes", fmt::format("{:.0f}\n", bytes * 3 / 4));
    }

    /// The control group of the policy's processes has used so many CPU seconds.
    void used(double seconds) {
        tree_.file("sys/fs/cgroup/web.service/cpu.stat",
                   fmt::format("usage_usec {:.0f}\n", seconds * million));
    }

    PassiveCost::Records settle(PassiveCost& costs, std::vector<CostSubject> subjects) {
        costs.begin(std::move(subjects), ++time_);
        while (!costs.step([] { return true; })) { // the smallest slices there are
        }
        return costs.take_closed();
    }
    PassiveCost::Records pass() { return settle(*costs_, subjects_); }

    PolicyCost cost(std::size_t number = 0) { return costs_->report().at(number); }
    double per_gb(std::size_t number = 0) {
        return per_gigabyte(cost(number).cpu_seconds, cost(number).bytes).value_or(-1);
    }
    static CostSubject web(std::uint64_t text_hash = 1, policy::Model model = policy::Model::none,
                           std::vector<std::string> nics = {"eth0"}) {
        return {"web", text_hash, model, std::move(nics), {"/web.service", "/web.service/inner"}};
    }

    affinityd::test::Tree tree_;
    std::optional<host::Root> root_;
    std::optional<PassiveCost> costs_;
    std::vector<CostSubject> subjects_;
    std::int64_t time_ = 1000;
};

TEST_F(PassiveCosts, SecondsPerGigabyteSinceThePeriodBegan) {
    counter("eth0", 500 * million);
    used(30);
    EXPECT_TRUE(pass().empty());
    EXPECT_FALSE(per_gigabyte(cost().cpu_seconds, cost().bytes)); // nothing has moved yet
    counter("eth0", 2500 * million);
    used(36);
    EXPECT_TRUE(pass().empty());
    EXPECT_DOUBLE_EQ(cost().bytes, 2000 * million);
    EXPECT_DOUBLE_EQ(cost().cpu_seconds, 6);
    EXPECT_DOUBLE_EQ(per_gb(), 3);
    EXPECT_EQ(cost().model, "none");
    EXPECT_FALSE(cost().before);
}

TEST_F(PassiveCosts, ChangedPolicyBeginsAPeriodAndKeepsTheOneBefore) {
    used(30);
    EXPECT_TRUE(pass().empty());
    load({web(2, policy::Model::full)});
    counter("eth0",
            2000 *
                million); // before the change: what is seen with the first pass after it belongs to the old
    used(36);
    const auto records = pass();
    ASSERT_EQ(records.size(), 1U);
    EXPECT_EQ(records[0].kind, "passive");
    EXPECT_EQ(records[0].path, "eth0");
    EXPECT_EQ(records[0].model, "none");
    EXPECT_EQ(records[0].policies, "web");
    EXPECT_EQ(records[0].bytes, 2'000'000'000U);
    EXPECT_DOUBLE_EQ(records[0].cpu_seconds, 6);
    counter("eth0", 4000 * million);
    used(40);
    EXPECT_TRUE(pass().empty());
    EXPECT_EQ(cost().model, "full");
    EXPECT_DOUBLE_EQ(cost().bytes, 2000 * million);
    EXPECT_DOUBLE_EQ(per_gb(), 2);
    EXPECT_EQ(cost().before->model, "none");
    EXPECT_DOUBLE_EQ(per_gigabyte(cost().before->cpu_seconds, cost().before->bytes).value(), 3);
}

TEST_F(PassiveCosts, ReloadWithTheSameTextGoesOn) {
    used(30);
    EXPECT_TRUE(pass().empty());
    load({web(), {"other", 7, policy::Model::none, {"eth1"}, {}}});
    counter("eth0", 2000 * million);
    counter("eth1", 2000 * million);
    used(36);
    EXPECT_TRUE(pass().empty());
    ASSERT_EQ(costs_->report().size(), 2U);
    EXPECT_EQ(cost(0).policy, "other");
    EXPECT_EQ(cost(0).bytes, 0); // its period has only begun
    EXPECT_DOUBLE_EQ(per_gb(1), 3);
}

TEST_F(PassiveCosts, RemovedPolicyIsClosed) {
    used(30);
    EXPECT_TRUE(pass().empty());
    counter("eth0", 1000 * million);
    used(31);
    EXPECT_TRUE(pass().empty());
    load({});
    counter("eth0", 2000 * million);
    const auto records = pass();
    ASSERT_EQ(records.size(), 1U);
    EXPECT_EQ(records[0].bytes, 2'000'000'000U);
    EXPECT_DOUBLE_EQ(records[0].cpu_seconds, 1);
    EXPECT_TRUE(costs_->report().empty());
}

TEST_F(PassiveCosts, AreKeptOverRestarts) {
    load({web(1, policy::Model::none, {"eth0", "eth1"})});
    used(30);
    EXPECT_TRUE(pass().empty());
    counter("eth0", 1500 * million);
    counter("eth1", 500 * million);
    used(36);
    const auto kept = settle(*costs_, {}); // the daemon ends
    ASSERT_EQ(kept.size(), 1U);
    EXPECT_EQ(kept[0].path, "eth0,eth1");
    EXPECT_DOUBLE_EQ(kept[0].cpu_seconds, 6);

    PassiveCost same(*root_);
    same.recall(kept);
    EXPECT_TRUE(settle(same, {web()}).empty());
    EXPECT_FALSE(same.report().at(0).before); // the same text: no change to compare over

    PassiveCost changed(*root_);
    changed.recall(kept);
    EXPECT_TRUE(settle(changed, {web(2, policy::Model::process)}).empty());
    const auto before = changed.report().at(0).before;
    ASSERT_TRUE(before);
    EXPECT_EQ(before->model, "none");
    EXPECT_DOUBLE_EQ(per_gigabyte(before->cpu_seconds, before->bytes).value(), 3);
}

TEST_F(PassiveCosts, SharedInterfacesAreSaid) {
    load({web(), {"db", 7, policy::Model::none, {"eth0", "eth1"}, {}}});
    EXPECT_TRUE(pass().empty());
    EXPECT_EQ(cost(0).nics.at(0).shared, true);
    EXPECT_EQ(cost(0).nics.at(1).shared, false);
    EXPECT_EQ(cost(1).nics.at(0).shared, true);
}

TEST_F(PassiveCosts, CountersThatStartAnewOrGoAreNoTraffic) {
    counter("eth0", 5000 * million);
    EXPECT_TRUE(pass().empty());
    counter("eth0", 1 * million); // plugged anew
    EXPECT_TRUE(pass().empty());
    EXPECT_EQ(cost().bytes, 0);
    std::filesystem::remove_all(tree_.path("sys/class/net/eth0"));
    EXPECT_TRUE(pass().empty());
    counter("eth0", 7000 * million);
    EXPECT_TRUE(pass().empty());
    EXPECT_EQ(cost().bytes, 0);
    counter("eth0", 7100 * million);
    EXPECT_TRUE(pass().empty());
    EXPECT_DOUBLE_EQ(cost().bytes, 100 * million);
}

} // namespace
} // namespace affinityd::accounting
