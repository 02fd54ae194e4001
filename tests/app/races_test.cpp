// SPDX-License-Identifier: Apache-2.0
// What happens between two slices: reloads before an answer is begun, releases while threads are being
// placed.
#include "app/explain_job.hpp"
#include "app/plan_job.hpp"
#include "machine/reader.hpp"
#include "simulated.hpp"

#include <filesystem>
#include <map>

namespace affinityd::app {
namespace {

using nlohmann::json;
using test::Instance;

constexpr const char* on_two = "match: {comm: server}\ncpus: \"2\"\nbind: set\n";
constexpr const char* on_three = "match: {comm: server}\ncpus: \"3\"\nbind: set\n";

class RacesTest : public testing::Test {
  protected:
    /// Process 10 with the threads 11 to 18.
    void server() const {
        machine_.process(10, "server");
        for (int tid = 11; tid <= last; ++tid)
            machine_.thread(10, tid, "worker", "0-3", 1, 0, 100 + tid);
    }
    /// How many of its threads are on CPU 2.
    [[nodiscard]] unsigned placed() const {
        unsigned count = 0;
        for (int tid = 10; tid <= last; ++tid)
            count += machine_.allowed(10, tid) == "2" ? 1 : 0;
        return count;
    }
    static void finish_in_short_slices(Instance& instance) {
        unsigned slices = 0;
        while (!instance.short_step() && ++slices < 10'000) {
        }
        EXPECT_LT(slices, 10'000U) << "it must end";
    }
    /// Releases `what` after `placed_before` threads of the process are placed, and lets everything end: no
    /// thread is placed afterwards, and those that were get their originals.
    void expect_none_placed_after_release(Instance& instance, const std::string& what,
                                          unsigned placed_before) {
        ASSERT_EQ(placed(), placed_before);
        const auto before = instance.enforcer().applied;
        bool is_answered = false;
        instance.manager().release(
            what, [&](const auto& answer) { is_answered = answer.has_value(); }, Until::done);
        for (unsigned now = placed_before, slices = 0; slices < 10'000 && !instance.short_step(); ++slices) {
            EXPECT_LE(placed(), now) << "a thread was placed under a policy that had been told to let go";
            now = placed();
        }
        EXPECT_TRUE(is_answered);
        EXPECT_EQ(placed(), 0U);
        EXPECT_EQ(instance.enforcer().applied, before + placed_before) << "each placed one was put back";
        instance.pass();
        EXPECT_EQ(instance.enforcer().applied, before + placed_before);
        EXPECT_EQ(instance.journal().size(), 0U);
    }
    static constexpr int last = 18;
    test::Machine machine_;
};

// A reload and an answer that waits behind it.

class ReloadRaces : public RacesTest {
  protected:
    /// Three policies, of which the last by name wants process 10. All but that are to go.
    void few_policies_instead_of_many() const {
        std::filesystem::remove(machine_.path("policies/a.yaml"));
        std::filesystem::remove(machine_.path("policies/b.yaml"));
        machine_.policy("server", on_three);
    }
    void many_policies() const {
        machine_.policy("a", "match: {comm: a}\ncpus: \"0\"\n");
        machine_.policy("b", "match: {comm: b}\ncpus: \"1\"\n");
        machine_.policy("server", on_two);
        server();
    }
    /// Asks while a reload waits for its slices, and gets the answer after it.
    json answer_behind_reload(Instance& instance, const std::function<void(OwnedAnswer)>& ask) {
        many_policies();
        EXPECT_TRUE(instance.manager().start());
        instance.pass();
        few_policies_instead_of_many();
        bool is_reloaded = false;
        std::optional<Result<OwnedText>> answer;
        instance.manager().reload([&](const auto& done) { is_reloaded = done.has_value(); }, Until::begun,
                                  ReloadReason::asked);
        ask([&](auto text) { answer = std::move(text); });
        EXPECT_FALSE(is_reloaded || answer);
        // The pass that the reload begins has its slices only afterwards.
        while (!answer && instance.manager().work().step([] { return true; }) == false) {
        }
        EXPECT_TRUE(is_reloaded);
        if (!answer || !*answer) {
            ADD_FAILURE() << (answer ? answer->error().message : "no answer");
            return nullptr;
        }
        return json::parse((*answer)->full());
    }
};

TEST_F(ReloadRaces, AnExplanationBehindAReloadIsOfTheNewPolicies) {
    Instance instance(machine_);
    const auto answer =
        answer_behind_reload(instance, [&](auto into) { instance.manager().explain("10", std::move(into)); });
    ASSERT_TRUE(answer.is_object());
    EXPECT_EQ(answer["policy"], "server");
    EXPECT_EQ(answer["considered"].size(), 1U) << answer["considered"].dump();
    ASSERT_EQ(answer["threads"].size(), 9U);
    for (const auto& thread : answer["threads"])
        EXPECT_EQ(thread["wanted"], "3") << thread.dump();
}

TEST_F(ReloadRaces, APlanBehindAReloadIsOfTheNewPolicies) {
    Instance instance(machine_);
    const auto answer =
        answer_behind_reload(instance, [&](auto into) { instance.manager().plan(std::move(into)); });
    ASSERT_TRUE(answer.is_object());
    for (const auto& action : answer["actions"])
        EXPECT_EQ(action["to"], "3") << action.dump();
}

TEST_F(ReloadRaces, StatusBehindAReloadIsOfTheNewPolicies) {
    Instance instance(machine_);
    const auto answer =
        answer_behind_reload(instance, [&](auto into) { instance.manager().status(std::move(into)); });
    ASSERT_TRUE(answer.is_object());
    EXPECT_EQ(answer["policies"].size(), 1U) << answer["policies"].dump();
    ASSERT_EQ(answer["processes"].size(), 1U);
    EXPECT_EQ(answer["processes"][0]["policy"], "server");
}

/// While the folders are read, of which three files are listed and the first is read.
class ReadingRaces : public testing::Test {
  protected:
    ReadingRaces() {
        for (const std::string name : {"a", "b", "c"})
            machine_.policy(name, "match: {comm: " + name + "}\n");
        EXPECT_FALSE(loader_.step(no_time));
    }
    void remove(const std::string& name) const {
        std::filesystem::remove(machine_.policies() + "/" + name + ".yaml");
    }
    /// Names of the policies in force.
    std::string end() {
        for (int slices = 0; slices < 100 && !loader_.step(no_time); ++slices) {
        }
        const auto loaded = loader_.take();
        if (!loaded || !loaded->found.faults.empty()) return "faults";
        std::string names;
        for (const auto& policy : loaded->world->policies().policies)
            names += policy.name;
        return names;
    }
    static constexpr auto no_time = [] { return true; };
    const test::Machine machine_;
    const state::LastGood none_;
    WorldLoader loader_{
        {machine_.policies()}, *machine::read_machine(*host::Root::open(machine_.path())), {}, none_};
};

/// As `rm *.yaml` does while the first of the removals is already being read.
TEST_F(ReadingRaces, AFileThatIsRemovedMeanwhileIsNoFault) {
    remove("b");
    EXPECT_EQ(end(), "ac");
}

/// As tools do that remove a file and write it anew.
TEST_F(ReadingRaces, AFileThatWasGoneForAMomentIsRead) {
    remove("b");
    EXPECT_FALSE(loader_.step(no_time)) << "it is gone, so the folder is to be listed again";
    machine_.policy("b", "match: {comm: b}\n");
    machine_.policy("d", "match: {comm: d}\n");
    EXPECT_EQ(end(), "abcd");
}

/// A file that is there whenever the folder is listed, and never when it is to be read.
TEST_F(ReadingRaces, WhereOneComesAndGoesAllTheTimeTheFolderIsListedFourTimes) {
    for (int list = 1; list <= 4; ++list) {
        remove("b");
        EXPECT_FALSE(loader_.step(no_time)) << "it is not there";
        machine_.policy("b", "match: {comm: b}\n");
        EXPECT_FALSE(loader_.step(no_time)) << "listed again, or at last the next one is read";
    }
    EXPECT_EQ(end(), "ac");
}

/// An answer whose world is replaced under it: the order of jobs does not let that happen, but nothing else
/// keeps indices into one set of policies from being used with another.
class ReplacedWorld : public ReloadRaces {
  protected:
    ReplacedWorld() : root_(*host::Root::open(machine_.path())) {}
    [[nodiscard]] std::shared_ptr<World> load() const {
        const state::LastGood none;
        WorldLoader loader({machine_.policies()}, *machine::read_machine(root_), {}, none);
        while (!loader.step([] { return false; })) {
        }
        return loader.take()->world;
    }
    /// Lets the job begin, replaces the world, and returns what it answers.
    template <class MakeJob>
    Result<OwnedText> answer_across(const MakeJob& make) {
        many_policies();
        Instance instance(machine_);
        EXPECT_TRUE(instance.manager().start());
        instance.pass();
        current_.world = load();
        std::optional<Result<OwnedText>> answer;
        auto job = make(instance, [&](auto text) { answer = std::move(text); });
        const auto out_of_time = [] { return true; };
        EXPECT_FALSE(job.step(out_of_time));
        EXPECT_FALSE(answer);
        few_policies_instead_of_many();
        current_.world = load();
        for (unsigned slices = 0; !job.step(out_of_time) && slices < 10'000; ++slices) {
        }
        return answer ? std::move(*answer) : fail("no answer");
    }
    host::Root root_;
    Current current_;
    test::ReadableLog log_;
    std::optional<enforcer::Executor> executor_;
    std::optional<LostRecords> lost_;
    Placed placed_;
    policy::Settings settings_;
    std::optional<Queues> queues_;
};

TEST_F(ReplacedWorld, AnExplanationUnderWayIsRefused) {
    const Releases releases;
    const auto answer = answer_across([&](Instance& instance, OwnedAnswer into) {
        return ExplainJob(
            {root_, current_, instance.tasks(), instance.journal(), releases, [](const TaskId&, auto&) {}},
            10, std::move(into));
    });
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().message, "the policies were reloaded meanwhile: ask again");
}

TEST_F(ReplacedWorld, APlanUnderWayIsRefused) {
    const Releases releases;
    const auto answer = answer_across([&](Instance& instance, OwnedAnswer into) {
        auto& journal = instance.journal();
        executor_.emplace(journal, instance.enforcer());
        lost_.emplace(root_, journal, log_.log());
        queues_.emplace(Queues::Parts{current_, journal, instance.enforcer(), *executor_, releases, *lost_,
                                      placed_, log_.log(), settings_});
        return PlanJob({root_, current_, instance.tasks(), *queues_}, std::move(into));
    });
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().message, "the policies were reloaded meanwhile: ask again");
}

// A release while threads are being placed.

TEST_F(RacesTest, ThreadsOfAReleasedPolicyAreNotPlacedByThePassUnderWay) {
    machine_.policy("server", on_two);
    for (unsigned before = 1; before < 9; ++before) {
        server();
        Instance instance(machine_);
        ASSERT_TRUE(instance.manager().start());
        instance.manager().begin_pass(false);
        while (placed() < before && !instance.short_step()) {
        }
        expect_none_placed_after_release(instance, "server", before);
    }
}

TEST_F(RacesTest, ThreadsOfAReleasedProcessAreNotPlacedByThePassUnderWay) {
    machine_.policy("server", on_two);
    server();
    Instance instance(machine_);
    ASSERT_TRUE(instance.manager().start());
    instance.manager().begin_pass(false);
    while (placed() < 4 && !instance.short_step()) {
    }
    expect_none_placed_after_release(instance, "10", 4);
}

TEST_F(RacesTest, ThreadsOfAReleasedPolicyAreNotPlacedByAnEventUnderWay) {
    machine_.policy("server", on_two);
    for (const char* what : {"server", "10", ""}) {
        server();
        Instance instance(machine_);
        ASSERT_TRUE(instance.manager().start());
        instance.enforcer().takes = std::chrono::milliseconds(2); // more than an event may take
        instance.tasks().process_changed(10);
        const auto at_once = placed(); // one, or none on a busy machine: the others wait for slices
        ASSERT_LE(at_once, 1U);
        instance.enforcer().takes = {};
        expect_none_placed_after_release(instance, what, at_once);
    }
}

TEST_F(RacesTest, AThreadThatIsBornOrRenamedAfterTheReleaseIsNotPlaced) {
    machine_.policy("server", on_two);
    for (const char* what : {"server", "10", ""}) {
        server();
        Instance instance(machine_);
        ASSERT_TRUE(instance.manager().start());
        instance.pass();
        ASSERT_EQ(placed(), 9U);
        ASSERT_TRUE(instance.release(what));
        // The pass that follows has not come to the process yet.
        ASSERT_EQ(placed(), 0U);
        instance.tasks().thread_changed(10, 12);
        instance.tasks().thread_renamed(10, 13, "renamed");
        EXPECT_EQ(placed(), 0U) << what;
        EXPECT_EQ(instance.journal().size(), 0U) << what;
        instance.stop();
    }
}

/// Kernel threads that do the work of eth0's queues.
class QueueThreadRaces : public RacesTest {
  protected:
    QueueThreadRaces() {
        machine_.policy("nic", "affinity: irq\nnics: [eth0]\ncpus: \"0,2\"\n");
        machine_.tree().file("sys/devices/pci0000:00/0000:00:03.0/net/eth0/threaded", "1\n");
        for (const auto& [pid, name] : names)
            machine_.process(pid, name, "0-3", 2, 0x00200000); // PF_KTHREAD
    }
    void expect_released(const std::string& when) const {
        for (const auto& [pid, name] : names)
            EXPECT_EQ(machine_.allowed(pid, pid), "0-3") << name << ": " << when;
        EXPECT_EQ(machine_.irq(30), "0-3") << when;
        EXPECT_EQ(machine_.irq(31), "0-3") << when;
    }
    const std::map<int, std::string> names{{50, "irq/30-eth0-TxRx-0"},
                                           {51, "irq/31-eth0-TxRx-1"},
                                           {60, "napi/eth0-8194"},
                                           {61, "napi/eth0-8193"}};
};

TEST_F(QueueThreadRaces, ThreadsOfReleasedQueuesStayReleasedUntilApply) {
    for (const char* what : {"nic", ""}) {
        Instance instance(machine_);
        ASSERT_TRUE(instance.manager().start());
        instance.pass();
        ASSERT_EQ(machine_.allowed(61, 61), "0");
        ASSERT_EQ(machine_.allowed(51, 51), "2");
        ASSERT_TRUE(instance.release(what));
        expect_released("at once");
        instance.finish();
        expect_released("after the pass that follows");
        EXPECT_EQ(instance.plan()["actions"], json::array()) << "nor does the plan list them";
        EXPECT_EQ(instance.explain("61")["released"], true);
        EXPECT_FALSE(instance.explain("61")["threads"][0].contains("would_change"));
        instance.pass(true);
        expect_released("after another pass");
        for (const auto& [pid, name] : names)
            instance.tasks().process_changed(pid);
        instance.finish();
        expect_released("after events");
        EXPECT_EQ(instance.journal().size(), 0U);
        instance.apply();
        instance.finish();
        EXPECT_EQ(machine_.allowed(61, 61), "0") << "who asks for everything anew gets it";
        EXPECT_EQ(machine_.allowed(51, 51), "2");
        instance.stop();
    }
}

TEST_F(QueueThreadRaces, AReleaseAtAnyMomentOfAPassReleasesThem) {
    bool was_whole = false; // the pass was over before the release
    unsigned slices = 0;
    for (; !was_whole && slices < 1000; ++slices) {
        Instance instance(machine_);
        ASSERT_TRUE(instance.manager().start());
        instance.manager().begin_pass(false);
        for (unsigned slice = 0; slice < slices; ++slice)
            was_whole = instance.short_step();
        bool is_answered = false;
        instance.manager().release(
            "nic", [&](const auto& answer) { is_answered = answer.has_value(); }, Until::done);
        finish_in_short_slices(instance);
        EXPECT_TRUE(is_answered);
        instance.pass();
        expect_released("after " + std::to_string(slices) + " slices");
        EXPECT_EQ(instance.journal().size(), 0U);
        instance.stop();
    }
    EXPECT_TRUE(was_whole);
    EXPECT_GT(slices, 20U);
}

} // namespace
} // namespace affinityd::app
