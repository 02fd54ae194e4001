// SPDX-License-Identifier: Apache-2.0
// What is read out of the machine or told about it: neighbours, serving interfaces, measurements, JSON.
#include "app/json.hpp"
#include "app/measurements.hpp"
#include "app/neighbours.hpp"
#include "app/serving.hpp"
#include "measure/result.hpp"
#include "simulated.hpp"

#include <sys/stat.h>

namespace affinityd::app {
namespace {

using nlohmann::json;

const planner::TaskMask task{{10, 100}, 10, "server"};
const planner::TaskMask other{{20, 200}, 20, "other"};
const planner::IrqMask irq{"devices/d", "eth0-TxRx-0", 30};

TEST(Json, AnActionOfEachKind) {
    const planner::Action action{task, CpuSet{0, 1}, CpuSet{2}, "p", "because", false};
    EXPECT_EQ(to_json(action), json({{"kind", "task"},
                                     {"pid", 10},
                                     {"tid", 10},
                                     {"comm", "server"},
                                     {"from", "0-1"},
                                     {"to", "2"},
                                     {"policy", "p"},
                                     {"reason", "because"},
                                     {"restore", false}}));
    const planner::Action interrupt{irq, CpuSet{0}, CpuSet{1}, "p", "r", true};
    EXPECT_EQ(to_json(interrupt), json({{"kind", "irq"},
                                        {"irq", 30},
                                        {"label", "eth0-TxRx-0"},
                                        {"device", "devices/d"},
                                        {"from", "0"},
                                        {"to", "1"},
                                        {"policy", "p"},
                                        {"reason", "r"},
                                        {"restore", true}}));
    planner::SteeringMask steering;
    steering.nic = "eth0";
    steering.queue = "tx-0";
    EXPECT_EQ(to_json(planner::Action{steering, {}, CpuSet{1}, "p", "r", false})["kind"], "steering");
}

TEST(Json, AThreadTellsOnlyWhatThereIs) {
    KnownThread thread;
    thread.id = {11, 1};
    thread.comm = "io";
    thread.state = planner::ThreadPlan::State::in_place;
    thread.wanted = thread.present = CpuSet{1};
    EXPECT_EQ(to_json(thread),
              json({{"tid", 11}, {"comm", "io"}, {"state", "in place"}, {"wanted", "1"}, {"present", "1"}}));
    thread.outcome = enforcer::Outcome::narrowed;
    const auto now = Truce::Clock::now();
    while (!thread.truce.correct({.window = std::chrono::seconds(1), .first = std::chrono::hours(1)}, now)) {
    }
    const auto value = to_json(thread);
    EXPECT_EQ(value["outcome"], enforcer::to_string(enforcer::Outcome::narrowed));
    EXPECT_EQ(value["corrections"], thread.truce.corrections());
    EXPECT_EQ(value["state"], "fought over");
}

TEST(Json, AQueueTellsItsOriginalOnceItIsHeld) {
    auto journal = *state::Journal::open("");
    planner::QueueTarget target;
    target.subject = irq;
    target.nic = "eth0";
    target.policy = "p";
    target.wanted = CpuSet{1};
    target.present = CpuSet{0, 1};
    EXPECT_FALSE(to_json(target, journal).contains("original"));
    ASSERT_TRUE(journal.remember(irq, CpuSet{0, 1, 2, 3}, CpuSet{1}, "p"));
    EXPECT_EQ(to_json(target, journal)["original"], "0-3");
}

TEST(Json, WhatIsNotUtf8IsReplaced) { EXPECT_EQ(dump(json{{"a", "x\xff"}}), "{\"a\":\"x\xef\xbf\xbd\"}"); }

class NeighboursTest : public testing::Test {
  protected:
    void listens(const std::string& paths) const {
        std::string table = "Num       RefCount Protocol Flags    Type St Inode Path\n";
        std::size_t at = 0;
        while (at < paths.size()) {
            const auto end = paths.find(' ', at);
            table += "0000000000000000: 00000002 00000000 00010000 0001 01 12345 " +
                     paths.substr(at, end - at) + "\n";
            at = end == std::string::npos ? paths.size() : end + 1;
        }
        machine_.tree().file("proc/net/unix", table);
    }
    void holds(const std::string& folder, const planner::Subject& subject) const {
        machine_.tree().folder(folder);
        auto theirs = *state::Journal::open(machine_.path(folder) + "/undo.journal");
        ASSERT_TRUE(theirs.remember(subject, CpuSet{0, 1}, CpuSet{1}, "theirs"));
    }
    [[nodiscard]] std::vector<Neighbour> find() const {
        const auto root = *host::Root::open(machine_.path());
        return find_neighbours(root, machine_.path("own"), journal_);
    }
    void SetUp() override {
        ASSERT_TRUE(journal_.remember(task, CpuSet{0, 1}, CpuSet{1}, "ours"));
        holds("own", task);
    }
    test::Machine machine_;
    state::Journal journal_ = *state::Journal::open("");
};

TEST_F(NeighboursTest, WhoHoldsTheSameIsFound) {
    holds("two", task);
    holds("three", other);
    listens(machine_.path("own/control") + " " + machine_.path("two/control") + " " +
            machine_.path("three/control"));
    const auto found = find();
    ASSERT_EQ(found.size(), 1U) << "not ourselves, and not who holds other things";
    EXPECT_EQ(found[0].runtime_dir, machine_.path("two"));
    ASSERT_EQ(found[0].shared.size(), 1U);
    EXPECT_EQ(found[0].shared[0], planner::Subject(task));
}

TEST_F(NeighboursTest, OtherSocketsAndForeignFilesAreNoNeighbours) {
    holds("two", task);
    machine_.tree().folder("empty");
    listens(machine_.path("two/controls") + " " + machine_.path("empty/control") +
            " @/abstract/control relative/control");
    EXPECT_TRUE(find().empty());
    listens(machine_.path("two/control"));
    EXPECT_EQ(find().size(), 1U);
    machine_.tree().file("two/undo.journal", std::string("garbage\n\0\xff\n", 11));
    EXPECT_TRUE(find().empty());
    machine_.tree().file("proc/net/unix", "");
    EXPECT_TRUE(find().empty());
}

TEST_F(NeighboursTest, AJournalThatAnybodyCouldHaveWrittenIsNotRead) {
    holds("two", task);
    listens(machine_.path("two/control"));
    ASSERT_EQ(find().size(), 1U);
    ASSERT_EQ(::chmod(machine_.path("two/undo.journal").c_str(), 0666), 0);
    EXPECT_TRUE(find().empty());
}

TEST_F(NeighboursTest, ManySocketsOfThatNameCostLittle) {
    std::string paths;
    for (int i = 0; i < 5000; ++i)
        paths += machine_.path("many" + std::to_string(i)) + "/control ";
    listens(paths);
    EXPECT_TRUE(find().empty());
}

/// A process whose one socket is in the machine's tables.
class ServingTest : public testing::Test {
  protected:
    void tcp(const std::string& lines) const {
        machine_.tree().file("proc/net/tcp", "  sl  local_address rem_address   st tx_queue rx_queue tr "
                                             "tm->when retrnsmt   uid  timeout inode\n" +
                                                 lines);
    }
    static std::string line(const std::string& local, const std::string& remote, const char* state,
                            unsigned inode) {
        return "   0: " + local + " " + remote + " " + state +
               " 00000000:00000000 00:00000000 00000000     0        0 " + std::to_string(inode) +
               " 1 0000000000000000 100 0 0 10 0\n";
    }
    /// Names of the interfaces found for the process 10.
    std::vector<std::string> nics(const std::string& policy) {
        machine_.policy("p", policy);
        machine_.process(10, "server");
        machine_.tree().folder("proc/10/fd");
        if (!std::filesystem::is_symlink(machine_.path("proc/10/fd/3")))
            machine_.tree().link("proc/10/fd/3", "socket:[77]");
        test::Instance instance(machine_);
        EXPECT_TRUE(instance.manager().start());
        instance.pass();
        const auto status = instance.status();
        return status["processes"].empty() ? std::vector<std::string>{"no process"}
                                           : status["processes"][0]["nics"].get<std::vector<std::string>>();
    }
    test::Machine machine_;
    using Names = std::vector<std::string>;
};

TEST_F(ServingTest, AWildcardListenerIsServedByEveryRealInterface) {
    tcp(line("00000000:0050", "00000000:0000", "0A", 77));
    EXPECT_EQ(nics("match: {comm: server}\naffinity: full\n"), Names{"eth0"});
}

TEST_F(ServingTest, WithoutASocketNobodyServes) {
    tcp(line("00000000:0050", "00000000:0000", "0A", 78));
    EXPECT_EQ(nics("match: {comm: server}\naffinity: full\n"), Names{}) << "another's socket";
}

TEST_F(ServingTest, LoopbackIsNoNic) {
    tcp(line("0100007F:0050", "00000000:0000", "0A", 77));
    EXPECT_EQ(nics("match: {comm: server}\naffinity: full\n"), Names{});
}

TEST_F(ServingTest, OneNamedNicNeedsNoSocket) {
    EXPECT_EQ(nics("match: {comm: server}\naffinity: full\nnics: [eth0]\n"), Names{"eth0"});
}

TEST_F(ServingTest, ProcessPoliciesDoNotAsk) {
    tcp(line("00000000:0050", "00000000:0000", "0A", 77));
    EXPECT_EQ(nics("match: {comm: server}\naffinity: process\n"), Names{});
}

class MeasurementsTest : public testing::Test {
  protected:
    static std::string report(double rate, const std::string& path = "loopback") {
        measure::Report value;
        value.outcome = measure::Outcome::done;
        value.setup.path = path;
        value.setup.touches_nic_interrupts = path != "loopback";
        value.setup.streams = 1;
        value.setup.buffer_bytes = 8192;
        value.seconds = 2;
        value.bytes = static_cast<std::uint64_t>(rate / 4);
        value.bits_per_second = rate;
        value.transmitter =
            measure::EndReport{.bytes = value.bytes, .calls = 1, .user_seconds = 0.5, .system_seconds = 1};
        value.receiver = measure::EndReport{
            .bytes = value.bytes, .calls = 1, .user_seconds = 0.25, .system_seconds = 0.25};
        return measure::to_json(value);
    }
    static policy::PolicySet policies(std::initializer_list<policy::Model> models) {
        policy::PolicySet set;
        for (const auto model : models) {
            set.policies.emplace_back();
            set.policies.back().name = "p" + std::to_string(set.policies.size());
            set.policies.back().model = model;
        }
        return set;
    }
    test::Tree tree_;
    test::ReadableLog log_;
};

TEST_F(MeasurementsTest, NothingBeforeTheFirst) { EXPECT_EQ(Measurements("", log_.log()).to_json(), "null"); }

TEST_F(MeasurementsTest, WhatWasMeasuredIsToldWithItsModel) {
    Measurements measurements("", log_.log());
    measurements.add({report(8e9), measure::Outcome::done, ""},
                     policies({policy::Model::full, policy::Model::full}));
    auto value = json::parse(measurements.to_json());
    EXPECT_EQ(value["runs"], 1);
    EXPECT_EQ(value["last"]["outcome"], "done");
    EXPECT_EQ(value["last"]["bits_per_second"], 8e9);
    EXPECT_EQ(value["last"]["cpu_seconds"], 2.0);
    EXPECT_EQ(value["last"]["model"], "full");
    EXPECT_EQ(value["last"]["policies"], "p1,p2");
    EXPECT_EQ(value["last"]["touches_nic_interrupts"], false);
    EXPECT_NE(value["summary"].get<std::string>().find("does not touch NIC interrupts"), std::string::npos);
    EXPECT_NE(value["summary"].get<std::string>().find("8.00 Gbit/s"), std::string::npos);
    measurements.add({report(8e9, "192.0.2.1:5001"), measure::Outcome::done, ""},
                     policies({policy::Model::full, policy::Model::irq}));
    value = json::parse(measurements.to_json());
    EXPECT_EQ(value["last"]["model"], "mixed");
    EXPECT_EQ(value["last"]["touches_nic_interrupts"], true);
    EXPECT_EQ(value["summary"].get<std::string>().find("loopback"), std::string::npos);
    measurements.add({report(8e9), measure::Outcome::done, ""}, policies({}));
    EXPECT_EQ(json::parse(measurements.to_json())["last"]["model"], "none");
}

TEST_F(MeasurementsTest, ARunWithoutAFigureIsRecordedToo) {
    Measurements measurements("", log_.log());
    measurements.add({"", measure::Outcome::failed, "took too long and was ended"}, {});
    auto value = json::parse(measurements.to_json());
    EXPECT_EQ(value["last"]["outcome"], "failed");
    EXPECT_EQ(value["last"]["reason"], "took too long and was ended");
    measurements.add({"{\"rate\": 1e999}", measure::Outcome::done, ""}, {});
    value = json::parse(measurements.to_json());
    EXPECT_EQ(value["last"]["outcome"], "failed");
    EXPECT_NE(value["last"]["reason"].get<std::string>().find("cannot be read"), std::string::npos);
    EXPECT_EQ(value["runs"], 2);
}

TEST_F(MeasurementsTest, ResultsSurviveARestart) {
    {
        Measurements measurements(tree_.path(), log_.log());
        measurements.add({report(4e9), measure::Outcome::done, ""}, {});
    }
    const Measurements again(tree_.path(), log_.log());
    EXPECT_EQ(json::parse(again.to_json())["last"]["bits_per_second"], 4e9);
}

TEST_F(MeasurementsTest, AHistoryThatCannotBeUsedIsSetAside) {
    tree_.file("history.db", std::string(4096, 'x'));
    Measurements measurements(tree_.path(), log_.log());
    measurements.add({report(4e9), measure::Outcome::done, ""}, {});
    EXPECT_EQ(json::parse(measurements.to_json())["runs"], 1);
    EXPECT_EQ(log_.times("could not be used"), 1U);
}

TEST_F(MeasurementsTest, WithoutAPlaceItGoesOnInMemory) {
    tree_.file("in-the-way", "a file");
    Measurements measurements(tree_.path("in-the-way/state"), log_.log());
    EXPECT_EQ(log_.times("kept until the end only"), 1U);
    measurements.add({report(4e9), measure::Outcome::done, ""}, {});
    EXPECT_EQ(json::parse(measurements.to_json())["runs"], 1);
}

TEST_F(MeasurementsTest, MemoryIsBoundedAndTheTrendComparesLikeWithLike) {
    Measurements measurements("", log_.log());
    for (int i = 0; i < 100; ++i)
        measurements.add({report(i % 2 == 0 ? 8e9 : 1e9, i % 2 == 0 ? "loopback" : "192.0.2.1:5001"),
                          measure::Outcome::done, ""},
                         {});
    measurements.add({report(8e9), measure::Outcome::done, ""}, {});
    const auto value = json::parse(measurements.to_json());
    EXPECT_LE(value["runs"], 64);
    EXPECT_EQ(value["trend"]["median"], 8e9) << "the other way is another figure";
}

} // namespace
} // namespace affinityd::app
