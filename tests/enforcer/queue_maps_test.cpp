// SPDX-License-Identifier: Apache-2.0
// What the queues of an interface are set to, while their number is changed by us or by others.
#include "enforcer/executor.hpp"
#include "enforcer/interface_queues.hpp"
#include "fake_enforcer.hpp"
#include "subjects.hpp"
#include "support/full_disk.hpp"
#include "support/tree.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <gtest/gtest.h>

namespace affinityd::enforcer {
namespace {

using machine::Channels;
using machine::Direction;
using machine::FlowCount;
using machine::FlowTable;
using machine::QueueCount;
using machine::Setting;
using machine::SteeringMask;
using machine::Subject;
using planner::Action;
using test::all;
using test::irq;
using Settings = std::unordered_map<Subject, Setting>;

const QueueCount count{"devices/d", "eth0"};
const Channels four{4, 0, 0}, two{2, 0, 0}, one{1, 0, 0};

SteeringMask rx(unsigned queue) { return {"devices/d", Direction::rx, queue, "eth0"}; }
SteeringMask tx(unsigned queue) { return {"devices/d", Direction::tx, queue, "eth0"}; }
FlowTable flows(unsigned queue) { return {"devices/d", queue, "eth0"}; }

/// Drivers put transmit queues on CPUs of their choice, and the kernel frees the maps of queues that go.
void reset(Settings& settings, unsigned before, unsigned after) {
    for (unsigned queue = after; queue < before; ++queue)
        for (const Subject& gone : {Subject(rx(queue)), Subject(tx(queue)), Subject(flows(queue))})
            settings.erase(gone);
    for (unsigned queue = before; queue < after; ++queue) {
        settings[rx(queue)] = CpuSet{};
        settings[flows(queue)] = FlowCount{};
    }
    for (unsigned queue = 0; queue < after; ++queue)
        settings[tx(queue)] = CpuSet{3};
    settings[irq] = CpuSet{3};
    settings[count] = Channels{after, 0, 0};
}

std::string text_of(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
}

/// A daemon on an interface of four queues, whose administrator has set maps. Policies have an interrupt, and
/// the map of one queue.
struct Daemon {
    explicit Daemon(const std::string& path, Settings settings)
        : journal(*state::Journal::open(path)), executor(journal, enforcer) {
        enforcer.settings = std::move(settings);
        for (unsigned queue = 0; queue < 4; ++queue)
            for (const Subject& subject : {Subject(rx(queue)), Subject(tx(queue)), Subject(flows(queue))})
                enforcer.may_be_back.insert(subject);
        enforcer.after_apply = [this](const Action& action) {
            const auto* changed = std::get_if<QueueCount>(&action.subject);
            if (changed != nullptr && action.from != action.to)
                reset(enforcer.settings, action.from.channels().combined, action.to.channels().combined);
            if (const auto tell = after_reset; changed != nullptr && tell) tell();
        };
    }
    Carried run(const Subject& subject, const Setting& to) {
        return *executor.run({subject, enforcer.settings.at(subject), to, "p", {}, false}, {topology});
    }
    void change_to(const Channels& number) { EXPECT_EQ(run(count, number).applied.outcome, Outcome::done); }
    void look(bool is_recent = false) { EXPECT_TRUE(executor.look_at(count, all, is_recent)); }
    void restore(bool counts) {
        for (const auto& entry : journal.queues())
            if (std::holds_alternative<QueueCount>(entry.subject) == counts)
                (void)executor.restore(entry.subject, all);
    }
    /// As the end does it, and a pass of policies that want nothing of it.
    void stop() {
        for (const auto& known : counts_in(journal))
            EXPECT_TRUE(executor.look_at(known, all));
        restore(true);
        restore(false);
    }
    std::function<void()> after_reset;
    topology::Topology topology = test::four_cpus();
    state::Journal journal;
    FakeEnforcer enforcer;
    Executor executor;
};

Settings originals() {
    Settings settings{{count, four}, {irq, all}};
    for (unsigned queue = 0; queue < 4; ++queue) {
        settings[rx(queue)] = CpuSet{0, queue};
        settings[tx(queue)] = queue == 1 ? CpuSet{} : CpuSet{queue};
        settings[flows(queue)] = FlowCount{queue == 2 ? 0U : 4096U};
    }
    return settings;
}

class QueueMapsTest : public testing::Test {
  protected:
    [[nodiscard]] std::string path() const { return tree_.path("undo.journal"); }
    void hold(Daemon& daemon) {
        daemon.run(irq, CpuSet{1});
        daemon.run(tx(0), CpuSet{1});
    }
    static void expect_originals(const Daemon& daemon, const std::string& when) {
        for (const auto& [subject, original] : originals()) {
            const auto found = daemon.enforcer.settings.find(subject);
            ASSERT_NE(found, daemon.enforcer.settings.end()) << to_string(subject) << ", " << when;
            EXPECT_EQ(found->second.to_string(), original.to_string()) << to_string(subject) << ", " << when;
        }
        EXPECT_EQ(daemon.journal.size(), 0U) << when;
    }

    /// A daemon that was killed leaves a journal of so many bytes, and the machine as it was then.
    struct Death {
        std::string journal;
        Settings settings;
    };
    /// All that a change from `begin` on can leave.
    std::vector<Death> deaths(Daemon& daemon, std::size_t begin, const std::function<void()>& change) {
        const auto before = daemon.enforcer.settings;
        std::size_t at_reset = 0;
        Settings after;
        daemon.after_reset = [&] {
            at_reset = text_of(path()).size();
            after = daemon.enforcer.settings;
        };
        change();
        const auto text = text_of(path());
        std::vector<Death> all_of_them;
        for (auto end = begin; end != std::string::npos + 1 && end <= text.size();
             end = text.find('\n', end) + 1) {
            if (end <= at_reset) all_of_them.push_back({text.substr(0, end), before});
            if (end >= at_reset) all_of_them.push_back({text.substr(0, end), after});
            if (end == text.size()) break;
        }
        return all_of_them;
    }
    /// What the next daemon makes of each of them.
    void survive(const std::vector<Death>& deaths, const std::string& what) {
        EXPECT_GT(deaths.size(), 5U);
        const std::map<std::string, std::function<void(Daemon&)>> nexts{
            {"stopped at once", [](Daemon&) {}},
            {"whose policy wants the number",
             [](Daemon& next) {
                 next.look();
                 const auto present = next.enforcer.settings.at(count);
                 if (present != Setting(two)) next.change_to(two);
                 EXPECT_TRUE(next.executor.settle(count, two, all));
             }},
            {"whose policy wants another number",
             [](Daemon& next) {
                 next.look();
                 next.change_to(one);
             }},
            {"whose policy wants maps only", [](Daemon& next) { (void)next.run(tx(0), CpuSet{2}); }},
            {"whose policy has no process yet", // so that the number stays for now
             [](Daemon& next) {
                 next.look();
                 for (const unsigned queue : {0U, 1U, 2U, 3U})
                     for (const Subject& map :
                          {Subject(rx(queue)), Subject(tx(queue)), Subject(flows(queue))})
                         (void)next.executor.restore(map, all);
             }},
            {"that looks at maps alone", [](Daemon& next) { (void)next.executor.restore(rx(3), all); }}};
        unsigned number = 0;
        for (const auto& death : deaths)
            for (const auto& [name, act] : nexts) {
                const auto left = tree_.path("left." + std::to_string(number++));
                std::ofstream(left, std::ios::binary) << death.journal;
                Daemon next(left, death.settings);
                act(next);
                next.stop();
                expect_originals(next, what + " after " + std::to_string(death.journal.size()) +
                                           " bytes, then a daemon " + name);
                if (HasFailure()) return;
            }
    }
    test::Tree tree_;
};

TEST_F(QueueMapsTest, WhereverTheDaemonIsKilledInAChangeTheNextGivesBackEveryOriginal) {
    Daemon daemon(path(), originals());
    hold(daemon);
    const auto begin = text_of(path()).size();
    survive(deaths(daemon, begin, [&] { daemon.change_to(two); }), "killed while it sets the number");
}

TEST_F(QueueMapsTest, AndWhereverItIsKilledWhileItPutsTheNumberBack) {
    Daemon daemon(path(), originals());
    hold(daemon);
    daemon.change_to(two);
    const auto begin = text_of(path()).size();
    survive(deaths(daemon, begin, [&] { (void)daemon.executor.restore(count, all); }),
            "killed while it puts the number back");
}

TEST_F(QueueMapsTest, AndWhereverItIsKilledWhileADriverResetsAndRefuses) {
    Daemon daemon(path(), originals());
    hold(daemon);
    const auto begin = text_of(path()).size();
    daemon.enforcer.answer = Outcome::failed;
    daemon.enforcer.before_apply = [&](const Action&) {
        reset(daemon.enforcer.settings, 4, 4);
        daemon.after_reset();
    };
    survive(deaths(daemon, begin, [&] { (void)daemon.run(count, two); }), "killed while it is refused");
}

// ethtool -L by hand

TEST_F(QueueMapsTest, WhoeverGivesTheNumberBackByHandGetsTheMapsBack) {
    for (const bool is_looked_at : {true, false}) {
        Daemon daemon(path(), originals());
        hold(daemon);
        daemon.look();
        daemon.change_to(two);
        if (is_looked_at) daemon.look();
        reset(daemon.enforcer.settings, 2, 4); // somebody else
        daemon.look(true);
        daemon.stop();
        auto expected = originals();
        daemon.enforcer.settings[irq] = expected[irq]; // its driver's mask is left to the passes
        expect_originals(daemon, is_looked_at ? "after a pass" : "at once");
    }
}

TEST_F(QueueMapsTest, MapsOfQueuesThatSomebodyElseTookAwayComeBackWithThem) {
    Daemon daemon(path(), originals());
    hold(daemon);
    for (const unsigned queue : {2U, 3U})
        daemon.run(rx(queue), CpuSet{2});
    daemon.look();
    reset(daemon.enforcer.settings, 4, 2);
    daemon.look(true);
    for (const unsigned queue : {2U, 3U}) // no policy wants them now
        EXPECT_EQ(daemon.executor.restore(rx(queue), all).applied.outcome, Outcome::gone);
    reset(daemon.enforcer.settings, 2, 4);
    daemon.look(true);
    daemon.stop();
    for (const Subject& subject : {Subject(rx(2)), Subject(rx(3)), Subject(tx(0))})
        EXPECT_EQ(daemon.enforcer.settings.at(subject), originals().at(subject)) << to_string(subject);
}

TEST_F(QueueMapsTest, AlsoIfAnotherDaemonSeesThemComeBack) {
    Settings left;
    {
        Daemon daemon(path(), originals());
        daemon.run(rx(3), CpuSet{2});
        daemon.look();
        reset(daemon.enforcer.settings, 4, 2);
        daemon.look();
        left = daemon.enforcer.settings;
    }
    reset(left, 2, 4);
    Daemon next(path(), left);
    next.stop();
    EXPECT_EQ(next.enforcer.settings.at(rx(3)), originals().at(rx(3)));
}

TEST_F(QueueMapsTest, AMapThatSomebodySetsHimselfAfterHisNumberStaysHis) {
    for (const bool is_seen : {true, false}) {
        Daemon daemon(path(), originals());
        hold(daemon);
        for (const unsigned queue : {0U, 3U})
            daemon.run(rx(queue), CpuSet{2});
        daemon.run(tx(3), CpuSet{2});
        daemon.look();
        reset(daemon.enforcer.settings, 4, 2);
        daemon.look(true);
        reset(daemon.enforcer.settings, 2, 4);
        if (is_seen) daemon.look(true);
        for (const Subject& his : {Subject(rx(0)), Subject(rx(3)), Subject(tx(3))})
            daemon.enforcer.settings[his] = CpuSet{0, 3};
        daemon.stop();
        for (const Subject& his : {Subject(rx(0)), Subject(rx(3)), Subject(tx(3))})
            EXPECT_EQ(daemon.enforcer.settings.at(his), Setting(CpuSet{0, 3})) << to_string(his) << is_seen;
        EXPECT_EQ(daemon.journal.size(), 0U);
        std::filesystem::remove_all(path());
    }
}

TEST_F(QueueMapsTest, AMapThatWasEmptiedByHandStaysEmpty) {
    Daemon daemon(path(), originals());
    daemon.run(rx(0), CpuSet{2});
    daemon.look();
    daemon.enforcer.settings[rx(0)] = CpuSet{};
    daemon.look(true); // some event of the interface
    daemon.stop();
    EXPECT_EQ(daemon.enforcer.settings.at(rx(0)), Setting(CpuSet{})) << "nobody has changed the number";
}

/// Interfaces go to another network namespace with their maps, and the daemon hears of it while they go.
class GoingInterfaceTest : public QueueMapsTest {
  protected:
    void go(Daemon& daemon) { elsewhere_ = std::exchange(daemon.enforcer.settings, {}); }
    /// Once `last` has been read.
    void go_after(Daemon& daemon, const Subject& last) {
        daemon.enforcer.after_present = [&, last](const Subject& subject) {
            if (subject != last) return;
            daemon.enforcer.after_present = {};
            go(daemon);
        };
    }
    void come_back(Daemon& daemon) { daemon.enforcer.settings = std::move(elsewhere_); }
    Settings elsewhere_;
};

TEST_F(GoingInterfaceTest, FindsItsMapsAsTheyWereWhereverItWasWhenTheyWereRead) {
    unsigned number = 0;
    for (const Subject& last : {Subject(count), Subject(rx(1)), Subject(tx(0)), Subject(tx(3))}) {
        Daemon daemon(tree_.path(std::to_string(number++)), originals());
        for (const unsigned queue : {0U, 1U, 2U, 3U}) {
            daemon.run(tx(queue), CpuSet{1});
            daemon.run(rx(queue), CpuSet{2});
        }
        go_after(daemon, last);
        daemon.look(true);
        EXPECT_FALSE(daemon.enforcer.after_present) << to_string(last) << " was read";
        come_back(daemon);
        daemon.stop();
        expect_originals(daemon, "gone after " + to_string(last));
    }
}

TEST_F(GoingInterfaceTest, AlsoAfterItsNumberWasChanged) {
    Daemon daemon(path(), originals());
    hold(daemon);
    daemon.run(rx(1), CpuSet{2});
    daemon.after_reset = [&] {
        daemon.after_reset = {};
        go(daemon);
    };
    (void)daemon.run(count, two);
    come_back(daemon);
    daemon.stop();
    expect_originals(daemon, "gone at once");
}

// What cannot be read

TEST_F(QueueMapsTest, WhereAMapCannotBeReadTheNumberIsNotChangedYet) {
    Daemon daemon(path(), originals());
    hold(daemon);
    daemon.enforcer.unreadable = {rx(1)};
    EXPECT_EQ(daemon.run(count, two).applied.outcome, Outcome::busy);
    EXPECT_EQ(daemon.enforcer.done.size(), 2U) << "the driver was not asked";
    EXPECT_FALSE(daemon.journal.contains(count));
    daemon.enforcer.unreadable.clear();
    daemon.change_to(two);
    daemon.stop();
    expect_originals(daemon, "as soon as it can be read");
}

TEST_F(QueueMapsTest, AMapThatCannotBeReadAfterTheChangeIsLookedAtAgain) {
    Daemon daemon(path(), originals());
    hold(daemon);
    daemon.after_reset = [&] { daemon.enforcer.unreadable = {tx(1)}; };
    daemon.change_to(two);
    daemon.after_reset = {};
    daemon.enforcer.unreadable.clear();
    daemon.stop();
    expect_originals(daemon, "after the next look");
}

TEST_F(QueueMapsTest, AsLongAsItIsNotKnownWhatWasResetMapsWait) {
    Daemon daemon(path(), originals());
    hold(daemon);
    daemon.after_reset = [&] { daemon.enforcer.unreadable = {tx(1)}; };
    daemon.change_to(two);
    daemon.after_reset = {};
    daemon.enforcer.unreadable = {count}; // and its driver is busy with itself
    EXPECT_EQ(daemon.executor.restore(tx(1), all).applied.outcome, Outcome::busy);
    EXPECT_FALSE(daemon.executor.look_at(count, all));
    daemon.enforcer.unreadable.clear();
    daemon.stop();
    expect_originals(daemon, "when that is over");
}

TEST(QueueCountOutcome, ThatTheDriverWasNotAskedIsNoRefusal) {
    for (const int code : {ENODEV, EINTR, EAGAIN})
        EXPECT_EQ(queue_count_outcome(code), Outcome::busy) << code;
    for (const int code : {EBUSY, EINVAL, EOPNOTSUPP, EIO})
        EXPECT_EQ(queue_count_outcome(code), Outcome::failed) << code;
    EXPECT_EQ(queue_count_outcome(EPERM), Outcome::not_permitted);
}

// What cannot be written down

TEST_F(QueueMapsTest, ANumberThatCannotBeWrittenDownIsNotSetAndThatIsNoRefusal) {
    Daemon daemon(path(), originals());
    hold(daemon);
    const auto size = text_of(path()).size();
    for (const std::size_t room : {0U, 60U, 200U, 300U}) { // for no line, for the number's, for some maps'
        const test::FullDisk full(size + room);
        EXPECT_EQ(daemon.run(count, two).applied.outcome, Outcome::unrecorded) << room;
    }
    EXPECT_EQ(daemon.enforcer.done.size(), 2U) << "the driver was not asked";
    EXPECT_TRUE(daemon.executor.refusals().empty());
    daemon.change_to(two);
    daemon.stop();
    expect_originals(daemon, "as soon as there is room");
}

} // namespace
} // namespace affinityd::enforcer
