// SPDX-License-Identifier: Apache-2.0
// Numbers of queues, and the maps of queues that come and go with them, as rounds see to them.
#include "app/queues.hpp"
#include "machine/reader.hpp"
#include "policy/reader.hpp"
#include "simulated.hpp"
#include "support/full_disk.hpp"

#include <cerrno>
#include <thread>

namespace affinityd::app {
namespace {

using machine::Channels;
using machine::QueueCount;
using machine::SteeringMask;
using planner::Subject;

const QueueCount eth0_queues{"devices/pci0000:00/0000:00:03.0", "eth0", 2};

policy::PolicySet policies(const std::string& text) {
    auto result = policy::read_policies({{"p.yaml", "version: 1\n" + text}});
    EXPECT_TRUE(result.diagnostics.empty());
    return std::move(result.set);
}

/// An interface of two queues, whose driver resets maps for another number of them.
class NumbersOfQueues : public testing::Test {
  protected:
    NumbersOfQueues() {
        settings_.requeue_interval = std::chrono::seconds(10); // so that the same has to be wanted for one
        enforcer_.channels["eth0"] = Channels{2, 0, 0};
        enforcer_.after_apply = [this](const planner::Action& action) {
            if (std::holds_alternative<QueueCount>(action.subject)) reset(action.to.channels().combined);
        };
    }
    void reset(unsigned queues) const {
        const std::string folder = "sys/devices/pci0000:00/0000:00:03.0/net/eth0/queues/";
        for (unsigned queue = 0; queue < 2; ++queue) {
            const auto number = std::to_string(queue);
            const bool is_there = std::filesystem::exists(machine_.path(folder + "rx-" + number));
            if (queue >= queues) {
                for (const char* kind : {"rx-", "tx-"})
                    std::filesystem::remove_all(machine_.path(folder + kind + number));
                continue;
            }
            if (!is_there) machine_.tree().file(folder + "rx-" + number + "/rps_cpus", "0\n");
            machine_.tree().file(folder + "tx-" + number + "/xps_cpus", "8\n");
        }
        enforcer_.channels["eth0"] = Channels{queues, 0, 0};
    }
    [[nodiscard]] machine::Machine read(std::optional<unsigned> queues, int fault = 0) const {
        auto machine = *machine::read_machine(root_);
        auto& nic = machine.nics.front();
        if (queues) nic.channels = netdev::Channels{.combined = queues, .max_combined = 2};
        nic.channels_fault = fault;
        return machine;
    }
    /// A policy with one task, which gives one lane.
    void want(const std::string& more, machine::Machine machine) {
        current_.world =
            std::make_shared<World>(policies("match: {comm: server}\naffinity: full\nnics: [eth0]\n" + more),
                                    std::move(machine), planner::NicUsage{{"p", {{{"eth0"}, 1}}}});
    }
    void round(std::optional<std::string> nic = {}) {
        QueueRound job(queues_, std::move(nic));
        while (!job.step([] { return true; })) {
        }
    }
    static void wait() { std::this_thread::sleep_for(std::chrono::milliseconds(1050)); }
    [[nodiscard]] unsigned number() const { return enforcer_.channels["eth0"].combined; }

    test::Machine machine_;
    host::Root root_ = *host::Root::open(machine_.path());
    test::ReadableLog log_;
    state::Journal journal_ = *state::Journal::open(machine_.path("undo.journal"));
    test::SimulatedEnforcer enforcer_{machine_};
    enforcer::Executor executor_{journal_, enforcer_};
    Releases releases_;
    LostRecords lost_{root_, journal_, log_.log()};
    Placed placed_;
    policy::Settings settings_;
    Current current_;
    Queues queues_{
        {current_, journal_, enforcer_, executor_, releases_, lost_, placed_, log_.log(), settings_}};
};

TEST_F(NumbersOfQueues, MapsWaitUntilTheInterfaceIsReadAfterTheChange) {
    want("queues: lanes\n", read(2));
    round();
    ASSERT_NE(machine_.steering("tx-0/xps_cpus"), "8") << "which the policy sets";
    wait();
    const auto begin = enforcer_.done.size();
    round();
    ASSERT_EQ(number(), 1U);
    for (auto i = begin; i < enforcer_.done.size(); ++i)
        EXPECT_FALSE(std::holds_alternative<SteeringMask>(enforcer_.done[i])) << "for queues that were";
    EXPECT_EQ(machine_.steering("tx-0/xps_cpus"), "8");
    current_->update(read(1));
    round("eth0");
    EXPECT_NE(machine_.steering("tx-0/xps_cpus"), "8");
}

TEST_F(NumbersOfQueues, AFullDiskIsNoRefusalAndTheNextPassTriesAgain) {
    want("queues: lanes\n", read(2));
    round();
    wait();
    {
        const affinityd::test::FullDisk full;
        round();
        round();
    }
    EXPECT_EQ(number(), 2U) << "what cannot be written down is not changed";
    EXPECT_EQ(log_.times("nothing is changed until it can be written"), 1U) << log_.text();
    EXPECT_EQ(log_.times("combined 2 -> combined 1"), 0U) << "it is not said that it is done";
    EXPECT_EQ(log_.times("could not be set"), 0U) << log_.text();
    round();
    EXPECT_EQ(number(), 1U);
}

TEST_F(NumbersOfQueues, AFullDiskIsNoRefusalEitherWhenTheNumberIsPutBack) {
    want("queues: keep\nsteering: false\n", read(1));
    reset(1);
    ASSERT_TRUE(journal_.put(eth0_queues, {Channels{2, 0, 0}, Channels{1, 0, 0}, Channels{1, 0, 0}, "p"}));
    {
        const affinityd::test::FullDisk full;
        round();
    }
    EXPECT_EQ(number(), 1U);
    round();
    EXPECT_EQ(number(), 2U);
}

/// netif_device_present() is false for a moment, or for long: nobody knows how many queues there are.
TEST_F(NumbersOfQueues, OfAnInterfaceThatCannotSayThemAreLeftAsTheyAre) {
    reset(1);
    ASSERT_TRUE(journal_.put(eth0_queues, {Channels{2, 0, 0}, Channels{1, 0, 0}, Channels{1, 0, 0}, "p"}));
    want("queues: lanes\n", read({}, ENODEV));
    for (const bool is_readable : {true, false}) {
        enforcer_.unreadable = {eth0_queues};
        if (is_readable) enforcer_.unreadable.clear(); // by now
        for (int pass = 0; pass < 3; ++pass) {
            round();
            wait();
        }
        EXPECT_EQ(number(), 1U) << is_readable;
    }
    want("queues: keep\n", read({}, ENODEV));
    round();
    EXPECT_EQ(number(), 1U);
    EXPECT_EQ(log_.times("could not be put back"), 0U) << log_.text();
    EXPECT_TRUE(journal_.contains(eth0_queues));
    enforcer_.unreadable.clear();
    want("queues: keep\n", read(1));
    round();
    EXPECT_EQ(number(), 2U) << "and then at once";
}

TEST_F(NumbersOfQueues, AMapThatCannotBeReadIsLeftAloneWithItsRecord) {
    want("queues: keep\n", read(2));
    round();
    SteeringMask map{eth0_queues.device, netdev::Direction::tx, 1, "eth0", eth0_queues.ifindex};
    const auto before = journal_.find(map);
    ASSERT_TRUE(before);
    machine_.tree().file("sys/devices/pci0000:00/0000:00:03.0/net/eth0/queues/tx-1/xps_cpus", "8\n");
    enforcer_.unreadable = {map};
    round();
    EXPECT_EQ(machine_.steering("tx-1/xps_cpus"), "8");
    EXPECT_EQ(journal_.find(map), before);
    const auto target =
        std::ranges::find(current_.placements().queues, Subject(map), &planner::QueueTarget::subject);
    ASSERT_NE(target, current_.placements().queues.end());
    EXPECT_EQ(queues_.status(*target).state, status::QueueStatus::State::not_read);
    enforcer_.unreadable.clear();
    round();
    EXPECT_NE(machine_.steering("tx-1/xps_cpus"), "8");
}

TEST_F(NumbersOfQueues, ThatSomebodyElseGivesBackBringTheMapsBackWithTheEvent) {
    want("queues: lanes\nsteering: false\n", read(2));
    const std::string folder = "sys/devices/pci0000:00/0000:00:03.0/net/eth0/queues/";
    machine_.tree().file(folder + "rx-1/rps_cpus", "4\n");
    machine_.tree().file(folder + "tx-1/xps_cpus", "4\n");
    machine_.tree().file(folder + "tx-0/xps_cpus", "2\n");
    round();
    wait();
    round();
    ASSERT_EQ(number(), 1U);
    current_->update(read(1));
    round();
    EXPECT_EQ(machine_.steering("tx-0/xps_cpus"), "2") << "what its driver reset";
    reset(2); // ethtool -L by hand
    current_->update(read(2));
    round("eth0");
    EXPECT_EQ(machine_.steering("rx-1/rps_cpus"), "4");
    EXPECT_EQ(machine_.steering("tx-1/xps_cpus"), "4");
    EXPECT_EQ(number(), 2U) << "it stays his";
}

TEST_F(NumbersOfQueues, ChangedByADaemonThatWasKilledLoseNoMapWhileItsPolicyHasNoProcess) {
    machine_.policy("p",
                    "match: {comm: server}\naffinity: full\nnics: [eth0]\nqueues: lanes\nsteering: false\n");
    const SteeringMask map{eth0_queues.device, netdev::Direction::tx, 0, "eth0", eth0_queues.ifindex};
    for (const bool is_stopped_at_once : {true, false}) {
        reset(1);
        test::Instance next(machine_);
        next.enforcer().channels["eth0"] = Channels{1, 0, 0};
        ASSERT_TRUE(next.journal().put(eth0_queues, {Channels{2, 0, 0}, Channels{1, 0, 0}, Channels{1, 0, 0},
                                                     "p", machine::Setting(Channels{2, 0, 0})}));
        ASSERT_TRUE(
            next.journal().put(map, {CpuSet{1}, CpuSet{1}, CpuSet{1}, "p"})); // the driver has reset it
        ASSERT_TRUE(next.manager().start());
        if (!is_stopped_at_once) next.pass();
        EXPECT_EQ(next.enforcer().channels["eth0"], (Channels{1, 0, 0}))
            << "its workers may only be restarted";
        next.stop();
        EXPECT_EQ(next.enforcer().channels["eth0"], (Channels{2, 0, 0}));
        EXPECT_EQ(machine_.steering("tx-0/xps_cpus"), "2") << is_stopped_at_once;
        EXPECT_EQ(next.log().times("somebody else has changed it"), 0U) << next.log().text();
    }
}

} // namespace
} // namespace affinityd::app
