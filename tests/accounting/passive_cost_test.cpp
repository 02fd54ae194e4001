// SPDX-License-Identifier: Apache-2.0
#include "app/passive_cost.hpp"
#include "host/root.hpp"
#include "planner/machines.hpp"
#include "support/tree.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace affinityd::app {
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
        load({{"web.yaml", "version: 1\nmatch: {comm: [web]}\naffinity: none\nnics: [eth0]\n"}});
    }

    void load(const std::vector<policy::Document>& documents) {
        auto read = policy::read_policies(documents);
        ASSERT_TRUE(read.ok());
        planner::Machine machine;
        machine.topology = planner::test::two_sockets();
        for (const char* name : {"eth0", "eth1"}) {
            netdev::Nic nic;
            nic.name = name;
            machine.nics.push_back(nic);
        }
        world_ = std::make_unique<World>(std::move(read.set), std::move(machine));
    }

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

    PassiveCost::Records pass(const planner::Serving& used = {}) {
        auto records = costs_->add_up(*world_, used, ++time_);
        costs_->begin_pass();
        return records;
    }

    nlohmann::json cost(std::size_t number = 0) { return costs_->to_json().at(number); }

    affinityd::test::Tree tree_;
    std::optional<host::Root> root_;
    std::optional<PassiveCost> costs_;
    std::unique_ptr<World> world_;
    std::int64_t time_ = 1000;
};

TEST_F(PassiveCosts, SecondsPerGigabyteSinceThePeriodBegan) {
    counter("eth0", 500 * million);
    process(10, 30);
    EXPECT_TRUE(pass().empty());
    EXPECT_TRUE(cost()["cpu_seconds_per_gb"].is_null()); // nothing has moved yet
    counter("eth0", 2500 * million);
    process(10, 36);
    EXPECT_TRUE(pass().empty());
    EXPECT_DOUBLE_EQ(cost()["bytes"], 2000 * million);
    EXPECT_DOUBLE_EQ(cost()["cpu_seconds"], 6);
    EXPECT_DOUBLE_EQ(cost()["cpu_seconds_per_gb"], 3);
    EXPECT_EQ(cost()["model"], "none");
    EXPECT_TRUE(cost()["before"].is_null());
}

TEST_F(PassiveCosts, ChangedPolicyBeginsAPeriodAndKeepsTheOneBefore) {
    process(10, 30);
    EXPECT_TRUE(pass().empty());
    load({{"web.yaml", "version: 1\nmatch: {comm: [web]}\naffinity: full\nnics: [eth0]\n"}});
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
    EXPECT_EQ(cost()["model"], "full");
    EXPECT_DOUBLE_EQ(cost()["bytes"], 2000 * million);
    EXPECT_DOUBLE_EQ(cost()["cpu_seconds_per_gb"], 2);
    EXPECT_EQ(cost()["before"]["model"], "none");
    EXPECT_DOUBLE_EQ(cost()["before"]["cpu_seconds_per_gb"], 3);
}

TEST_F(PassiveCosts, ReloadWithTheSameTextGoesOn) {
    process(10, 30);
    EXPECT_TRUE(pass().empty());
    load({{"web.yaml", "version: 1\nmatch: {comm: [web]}\naffinity: none\nnics: [eth0]\n"},
          {"other.yaml", "version: 1\nmatch: {comm: [other]}\nnics: [eth1]\n"}});
    counter("eth0", 2000 * million);
    counter("eth1", 2000 * million);
    process(10, 36);
    EXPECT_TRUE(pass().empty());
    const auto all = costs_->to_json();
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0]["policy"], "other");
    EXPECT_EQ(all[0]["bytes"], 0); // its period has only begun
    EXPECT_DOUBLE_EQ(all[1]["cpu_seconds_per_gb"], 3);
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
    EXPECT_TRUE(costs_->to_json().empty());
}

TEST_F(PassiveCosts, AreKeptOverRestarts) {
    const std::string text = "version: 1\nmatch: {comm: [web]}\naffinity: none\n";
    load({{"web.yaml", text}});
    process(10, 30);
    EXPECT_TRUE(pass({{"web", {{"eth0", 1}, {"eth1", 1}}}}).empty()); // named by its sockets
    counter("eth0", 1500 * million);
    counter("eth1", 500 * million);
    process(10, 36);
    const auto kept = costs_->finish(*world_, ++time_);
    ASSERT_EQ(kept.size(), 2U); // one for each interface
    EXPECT_DOUBLE_EQ(kept[0].cpu_seconds + kept[1].cpu_seconds, 6);

    PassiveCost same(*root_);
    same.recall(kept);
    EXPECT_TRUE(same.add_up(*world_, {{"web", {{"eth0", 1}}}}, ++time_).empty());
    EXPECT_TRUE(same.to_json().at(0)["before"].is_null()); // the same policy: no change to compare over

    load({{"web.yaml", "version: 1\nmatch: {comm: [web]}\naffinity: process\nnics: [eth0]\n"}});
    PassiveCost changed(*root_);
    changed.recall(kept);
    EXPECT_TRUE(changed.add_up(*world_, {}, ++time_).empty());
    EXPECT_EQ(changed.to_json().at(0)["before"]["model"], "none");
    EXPECT_DOUBLE_EQ(changed.to_json().at(0)["before"]["cpu_seconds_per_gb"], 3);
}

TEST_F(PassiveCosts, RecordsOfOtherMakeAreNotRecalled) {
    state::MeasurementRecord record;
    record.policies = "web";
    for (const char* detail :
         {"", "{", "[]", "{}", "{\"text_hash\":-1}", "{\"text_hash\":\"7\"}", "{\"text_hash\":1.5}"}) {
        record.detail = detail;
        costs_->recall({record});
    }
    EXPECT_TRUE(pass().empty());
    EXPECT_TRUE(cost()["before"].is_null());
}

TEST_F(PassiveCosts, SharedInterfacesAreSaid) {
    load({{"web.yaml", "version: 1\nmatch: {comm: [web]}\nnics: [eth0]\n"},
          {"db.yaml", "version: 1\nmatch: {comm: [db]}\nnics: [eth0, eth1]\n"}});
    EXPECT_TRUE(pass().empty());
    EXPECT_EQ(cost(0)["nics"][0]["shared"], true);
    EXPECT_EQ(cost(0)["nics"][1]["shared"], false);
    EXPECT_EQ(cost(1)["nics"][0]["shared"], true);
}

TEST_F(PassiveCosts, CountersThatStartAnewOrGoAreNoTraffic) {
    counter("eth0", 5000 * million);
    EXPECT_TRUE(pass().empty());
    counter("eth0", 1 * million); // plugged anew
    EXPECT_TRUE(pass().empty());
    EXPECT_EQ(cost()["bytes"], 0);
    std::filesystem::remove_all(tree_.path("sys/class/net/eth0"));
    EXPECT_TRUE(pass().empty());
    counter("eth0", 7000 * million);
    EXPECT_TRUE(pass().empty());
    EXPECT_EQ(cost()["bytes"], 0);
    counter("eth0", 7100 * million);
    EXPECT_TRUE(pass().empty());
    EXPECT_DOUBLE_EQ(cost()["bytes"], 100 * million);
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
    EXPECT_DOUBLE_EQ(cost()["softirq_seconds_per_gb"], 1);
}

} // namespace
} // namespace affinityd::app
