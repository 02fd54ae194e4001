// SPDX-License-Identifier: Apache-2.0
#include "accounting/passive_cost.hpp"
#include "host/root.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace affinityd::accounting {
namespace {

constexpr double million = 1e6;

/// A machine of files: processes with their CPU time, interfaces with their counters.
class PassiveCosts : public testing::Test {
  protected:
    PassiveCosts() {
        tree_.folder("proc");
        tree_.folder("sys");
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

    /// A process of the policy has used so many CPU seconds; seen in this pass.
    void process(int pid, double seconds, const std::string& policy = "web") {
        const auto ticks = static_cast<long>(seconds * static_cast<double>(::sysconf(_SC_CLK_TCK)));
        tree_.file(fmt::format("proc/{}/stat", pid),
                   fmt::format("{} (we) b) S 1 1 1 0 -1 0 0 0 0 0 {} {} 0 0 20 0 1 0 77 0 0\n", pid,
                               ticks - ticks / 3, ticks / 3));
        costs_->see({pid, 77}, policy);
    }

    PassiveCost::Records settle(PassiveCost& costs, std::vector<CostSubject> subjects) {
        costs.begin_settling({std::move(subjects), {"eth0", "eth1"}, ++time_});
        while (!costs.settle([] { return true; })) { // the smallest slices there are
        }
        return costs.take_closed();
    }
    PassiveCost::Records pass() {
        auto records = settle(*costs_, subjects_);
        costs_->begin_pass();
        return records;
    }

    PolicyCost cost(std::size_t number = 0) { return costs_->report().at(number); }
    double per_gb(std::size_t number = 0) {
        return per_gigabyte(cost(number).cpu_seconds, cost(number).bytes).value_or(-1);
    }
    static CostSubject web(std::uint64_t text_hash = 1, policy::Model model = policy::Model::none,
                           std::vector<std::string> nics = {"eth0"}) {
        return {"web", text_hash, model, std::move(nics)};
    }

    affinityd::test::Tree tree_;
    std::optional<host::Root> root_;
    std::optional<PassiveCost> costs_;
    std::vector<CostSubject> subjects_;
    std::int64_t time_ = 1000;
};

TEST_F(PassiveCosts, SecondsPerGigabyteSinceThePeriodBegan) {
    counter("eth0", 500 * million);
    process(10, 30);
    EXPECT_TRUE(pass().empty());
    EXPECT_FALSE(per_gigabyte(cost().cpu_seconds, cost().bytes)); // nothing has moved yet
    counter("eth0", 2500 * million);
    process(10, 36);
    EXPECT_TRUE(pass().empty());
    EXPECT_DOUBLE_EQ(cost().bytes, 2000 * million);
    EXPECT_DOUBLE_EQ(cost().cpu_seconds, 6);
    EXPECT_DOUBLE_EQ(per_gb(), 3);
    EXPECT_EQ(cost().model, "none");
    EXPECT_FALSE(cost().before);
}

TEST_F(PassiveCosts, ChangedPolicyBeginsAPeriodAndKeepsTheOneBefore) {
    process(10, 30);
    EXPECT_TRUE(pass().empty());
    load({web(2, policy::Model::full)});
    counter("eth0",
            2000 *
                million); // before the change: what is seen with the first pass after it belongs to the old
    process(10, 36);
    const auto records = pass();
    ASSERT_EQ(records.size(), 1U);
    EXPECT_EQ(records[0].kind, "passive");
    EXPECT_EQ(records[0].path, "eth0");
    EXPECT_EQ(records[0].model, "none");
    EXPECT_EQ(records[0].policies, "web");
    EXPECT_EQ(records[0].bytes, 2'000'000'000U);
    EXPECT_DOUBLE_EQ(records[0].cpu_seconds, 6);
    counter("eth0", 4000 * million);
    process(10, 40);
    EXPECT_TRUE(pass().empty());
    EXPECT_EQ(cost().model, "full");
    EXPECT_DOUBLE_EQ(cost().bytes, 2000 * million);
    EXPECT_DOUBLE_EQ(per_gb(), 2);
    EXPECT_EQ(cost().before->model, "none");
    EXPECT_DOUBLE_EQ(per_gigabyte(cost().before->cpu_seconds, cost().before->bytes).value(), 3);
}

TEST_F(PassiveCosts, ReloadWithTheSameTextGoesOn) {
    process(10, 30);
    EXPECT_TRUE(pass().empty());
    load({web(), {"other", 7, policy::Model::none, {"eth1"}}});
    counter("eth0", 2000 * million);
    counter("eth1", 2000 * million);
    process(10, 36);
    EXPECT_TRUE(pass().empty());
    ASSERT_EQ(costs_->report().size(), 2U);
    EXPECT_EQ(cost(0).policy, "other");
    EXPECT_EQ(cost(0).bytes, 0); // its period has only begun
    EXPECT_DOUBLE_EQ(per_gb(1), 3);
}

TEST_F(PassiveCosts, RemovedPolicyIsClosed) {
    process(10, 30);
    EXPECT_TRUE(pass().empty());
    counter("eth0", 1000 * million);
    process(10, 31);
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
    process(10, 30);
    EXPECT_TRUE(pass().empty());
    counter("eth0", 1500 * million);
    counter("eth1", 500 * million);
    process(10, 36);
    const auto kept = settle(*costs_, {}); // the daemon ends
    ASSERT_EQ(kept.size(), 2U);            // one for each interface
    EXPECT_DOUBLE_EQ(kept[0].cpu_seconds + kept[1].cpu_seconds, 6);

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

TEST_F(PassiveCosts, AbandonedSettlementLosesNoTraffic) {
    process(10, 30);
    EXPECT_TRUE(pass().empty());
    counter("eth0", 1000 * million);
    costs_->begin_settling({subjects_, {"eth0", "eth1"}, ++time_});
    EXPECT_FALSE(costs_->settle([] { return true; })) << "one counter has been read";
    EXPECT_FALSE(costs_->settle([] { return true; }));
    costs_->begin_pass();
    counter("eth0", 2000 * million);
    process(10, 36);
    EXPECT_TRUE(pass().empty());
    EXPECT_DOUBLE_EQ(cost().bytes, 2000 * million);
    EXPECT_DOUBLE_EQ(per_gb(), 3);
}

TEST_F(PassiveCosts, ManyInterfacesAndProcessesAreSettledInSlices) {
    for (int pid = 100; pid < 600; ++pid)
        process(pid, 1);
    std::vector<std::string> nics;
    for (int i = 0; i < 500; ++i)
        nics.push_back("veth" + std::to_string(i));
    costs_->begin_settling({subjects_, nics, ++time_});
    unsigned slices = 1;
    while (!costs_->settle([] { return true; }))
        ++slices;
    EXPECT_GE(slices, 900U) << "one interface or process in each of the smallest slices";
}

TEST_F(PassiveCosts, SharedInterfacesAreSaid) {
    load({web(), {"db", 7, policy::Model::none, {"eth0", "eth1"}}});
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

TEST_F(PassiveCosts, SoftirqTimeIsSharedByBytes) {
    const long hertz = ::sysconf(_SC_CLK_TCK);
    const auto softirqs = [&](long seconds) {
        tree_.file("proc/stat", fmt::format("cpu  0 0 0 0 0 0 {} 0 0 0\n", seconds * hertz));
        tree_.file("proc/softirqs", "  CPU0\n TIMER: 50\n NET_RX: 50\n");
    };
    softirqs(10);
    EXPECT_TRUE(pass().empty());
    softirqs(18); // 4 s of them the network's
    counter("eth0", 3000 * million);
    counter("eth1", 1000 * million);
    EXPECT_TRUE(pass().empty());
    EXPECT_DOUBLE_EQ(per_gigabyte(cost().softirq_seconds, cost().bytes).value(), 1);
}

} // namespace
} // namespace affinityd::accounting
