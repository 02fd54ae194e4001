// SPDX-License-Identifier: Apache-2.0
#include "app/simulated.hpp"
#include "events/process_events.hpp"
#include "events/slices.hpp"
#include "events/timer.hpp"
#include "turning.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <deque>
#include <utility>
#include <vector>

#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::events {
namespace {

using app::test::Machine;
using host::ProcEvent;
using host::ProcSource;
using std::chrono::milliseconds;
using test::Turning;

/// A child that waits in a pipe for its orders, one letter each.
class Child {
  public:
    Child() {
        EXPECT_EQ(::pipe(orders_), 0);
        pid_ = ::fork();
        if (pid_ == 0) obey();
        ::close(orders_[0]);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child() {
        ::close(orders_[1]);
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    void order(char what) const { EXPECT_EQ(::write(orders_[1], &what, 1), 1); }
    [[nodiscard]] int pid() const { return pid_; }

  private:
    [[noreturn]] void obey() const {
        ::close(orders_[1]);
        char what = 0;
        while (::read(orders_[0], &what, 1) == 1) {
            if (what == 'n') ::prctl(PR_SET_NAME, "server");
            if (what == 'e') ::_exit(0);
        }
        ::_exit(0);
    }
    int orders_[2] = {-1, -1};
    int pid_ = 0;
};

/// The kernel's own events, over a machine out of files on which the child is what the test says.
class ProcessEventsTest : public testing::Test {
  protected:
    void SetUp() override {
        machine_.policy("server", "match: {comm: server}\ncpus: \"2\"\nbind: set\n");
        instance_ = std::make_unique<app::test::Instance>(machine_);
        ASSERT_TRUE(instance_->manager().start());
        events_ = ProcessEvents::start(turning_.event(), instance_->manager(), instance_->log().log());
        ASSERT_TRUE(events_) << instance_->log().text();
    }
    /// It is placed. On a busy machine only slices end what an event began.
    [[nodiscard]] bool is_placed(int pid) {
        return turning_.until([&] {
            return instance_->tasks().step([] { return false; }) && machine_.allowed(pid, pid) == "2";
        });
    }
    Machine machine_;
    Turning turning_;
    std::unique_ptr<app::test::Instance> instance_;
    std::unique_ptr<ProcessEvents> events_;
};

TEST_F(ProcessEventsTest, ARenameIsSeenAndSoIsTheEnd) {
    const Child child;
    machine_.process(child.pid(), "server");
    turning_.turn_for(milliseconds(100));
    EXPECT_FALSE(instance_->knows(child.pid())) << "its birth alone is not looked at";
    child.order('n');
    EXPECT_TRUE(turning_.until([&] { return instance_->knows(child.pid()); }));
    EXPECT_TRUE(is_placed(child.pid()));
    machine_.end(child.pid());
    child.order('e'); // exits are followed from the first process under policy on
    EXPECT_TRUE(turning_.until([&] { return !instance_->knows(child.pid()); }));
    EXPECT_EQ(instance_->journal().size(), 0U);
}

TEST_F(ProcessEventsTest, BirthsOfKnownProcessesAreFollowedOnlyWhileWanted) {
    machine_.process(::getpid(), "server");
    instance_->tasks().process_changed(::getpid());
    ASSERT_TRUE(instance_->knows(::getpid()));
    const Child before;
    machine_.process(before.pid(), "server", "0-3", ::getpid());
    turning_.turn_for(milliseconds(100));
    EXPECT_FALSE(instance_->knows(before.pid()));
    events_->follow();
    const Child child;
    machine_.process(child.pid(), "server", "0-3", ::getpid());
    EXPECT_TRUE(turning_.until([&] { return instance_->knows(child.pid()); }));
    EXPECT_TRUE(is_placed(child.pid()));
}

/// What a test makes of a source: it is readable all the time, as a broken socket is.
struct Play {
    unsigned opened = 0;
    unsigned drained = 0;
    unsigned works_from = 1; ///< the source opened for the nth time works
    int open_error = 0;      ///< of openings before that one, but the first
    bool takes_filters = true;
    std::size_t most_at_once = 0; ///< events that one call of drain() handed on
    ProcSource::Wanted wanted{};
};

class PlayedSource final : public ProcSource {
  public:
    PlayedSource(Play& play, bool works)
        : play_(play), works_(works), fd_(::eventfd(works ? 0 : 1, EFD_CLOEXEC)) {}
    [[nodiscard]] int fd() const override { return fd_.get(); }
    [[nodiscard]] bool has_events() const override { return !works_; }
    [[nodiscard]] Result<void> set_filter(Wanted wanted) override {
        if (!play_.takes_filters) return fail("no filter", {}, ENOMEM);
        play_.wanted = wanted;
        return {};
    }
    Drained drain(const std::function<void(const ProcEvent&)>&, const std::function<bool()>&) override {
        ++play_.drained;
        return {.error = works_ ? 0 : ENOTCONN};
    }

  private:
    Play& play_;
    bool works_;
    host::Fd fd_;
};

class BrokenSource : public testing::Test {
  protected:
    void start() {
        instance_ = std::make_unique<app::test::Instance>(machine_);
        ASSERT_TRUE(instance_->manager().start());
        events_ = ProcessEvents::start(
            turning_.event(), instance_->manager(), instance_->log().log(),
            {.open = [this](ProcSource::Wanted wanted) -> Result<std::unique_ptr<ProcSource>> {
                 const bool works = ++play_.opened >= play_.works_from;
                 play_.wanted = wanted;
                 if (!works && play_.opened > 1 && play_.open_error != 0)
                     return fail("no", {}, play_.open_error);
                 return std::make_unique<PlayedSource>(play_, works);
             },
             .first_pause = milliseconds(40)});
        ASSERT_TRUE(events_);
    }
    [[nodiscard]] bool says(const std::string& text) {
        return instance_->log().text().find(text) != std::string::npos;
    }
    Machine machine_;
    Turning turning_;
    Play play_;
    std::unique_ptr<app::test::Instance> instance_;
    std::unique_ptr<ProcessEvents> events_;
};

/// A storm of events that never ends.
class StormingSource final : public ProcSource {
  public:
    explicit StormingSource(Play& play) : play_(play), fd_(::eventfd(1, EFD_CLOEXEC)) {}
    [[nodiscard]] int fd() const override { return fd_.get(); }
    [[nodiscard]] bool has_events() const override { return true; }
    [[nodiscard]] Result<void> set_filter(Wanted) override { return {}; }
    Drained drain(const std::function<void(const ProcEvent&)>& sink,
                  const std::function<bool()>& out_of_time) override {
        ++play_.drained;
        Drained drained{.more = true};
        while (!out_of_time() && ++drained.events < 1'000'000)
            sink(ProcEvent{});
        play_.most_at_once = std::max(play_.most_at_once, drained.events);
        return drained;
    }

  private:
    Play& play_;
    host::Fd fd_;
};

TEST(StormOfEvents, IsHandledInSlicesWithOtherWorkBetweenThem) {
    const Machine machine;
    const Turning turning;
    Play play;
    app::test::Instance instance(machine);
    ASSERT_TRUE(instance.manager().start());
    const auto events = ProcessEvents::start(turning.event(), instance.manager(), instance.log().log(),
                                             {.open = [&](auto) -> Result<std::unique_ptr<ProcSource>> {
                                                 return std::make_unique<StormingSource>(play);
                                             }});
    ASSERT_TRUE(events);
    unsigned timers = 0;
    Timer timer([&] { ++timers; });
    ASSERT_TRUE(timer.add_to(turning.event()));
    for (unsigned turn = 0; turn < 200 && timers < 3; ++turn) {
        if (!timer.is_armed()) timer.arm(milliseconds(1));
        sd_event_run(turning.event(), 10'000);
    }
    EXPECT_GT(play.drained, 1U);
    EXPECT_LT(play.most_at_once, 1'000'000U) << "the clock ends a slice";
    EXPECT_GE(play.most_at_once, 1U);
    EXPECT_TRUE(events->waiting()) << "work in slices makes room for them";
}

/// Events that a test has prepared.
class PreparedSource final : public ProcSource {
  public:
    struct Play {
        std::deque<ProcEvent> events;
        bool loses = false;
        Wanted wanted{};
    };
    explicit PreparedSource(Play& play) : play_(play), fd_(::eventfd(1, EFD_CLOEXEC)) {}
    [[nodiscard]] int fd() const override { return fd_.get(); }
    [[nodiscard]] bool has_events() const override { return !play_.events.empty(); }
    [[nodiscard]] Result<void> set_filter(Wanted wanted) override {
        play_.wanted = std::move(wanted);
        return {};
    }
    Drained drain(const std::function<void(const ProcEvent&)>& sink,
                  const std::function<bool()>& out_of_time) override {
        Drained drained{.lost = std::exchange(play_.loses, false)};
        while (!play_.events.empty() && !drained.more) {
            sink(play_.events.front());
            play_.events.pop_front();
            drained.more = out_of_time();
        }
        return drained;
    }

  private:
    Play& play_;
    host::Fd fd_;
};

class Storm : public testing::Test {
  protected:
    void SetUp() override {
        machine_.policy("server", "match: {comm: server}\ncpus: \"2\"\nbind: set\n");
        machine_.process(10, "server");
        machine_.process(20, "server");
        instance_ = std::make_unique<app::test::Instance>(machine_);
        ASSERT_TRUE(instance_->manager().start());
        events_ = ProcessEvents::start(turning_.event(), instance_->manager(), instance_->log().log(),
                                       {.open = [this](auto) -> Result<std::unique_ptr<ProcSource>> {
                                           return std::make_unique<PreparedSource>(play_);
                                       }});
        ASSERT_TRUE(events_);
    }
    void renames(int pid, unsigned count) {
        for (unsigned i = 0; i < count; ++i)
            play_.events.push_back({.kind = ProcEvent::Kind::comm, .pid = pid, .tid = pid});
    }
    /// More than any machine takes in the time that one turn has.
    void endless(int pid) {
        constexpr std::size_t many = 1'000'000;
        renames(pid, static_cast<unsigned>(many - std::min(many, play_.events.size())));
    }
    Machine machine_;
    Turning turning_;
    PreparedSource::Play play_;
    std::unique_ptr<app::test::Instance> instance_;
    std::unique_ptr<ProcessEvents> events_;
};

TEST_F(Storm, OfOneProcessCostsFewLooksAndTheNextOneIsPlaced) {
    renames(10, 40'000);
    play_.events.push_back({.kind = ProcEvent::Kind::exec, .pid = 20, .tid = 20});
    EXPECT_TRUE(turning_.until([&] { return instance_->knows(20); }));
    EXPECT_EQ(machine_.allowed(20, 20), "2");
    EXPECT_LT(instance_->tasks().events().handled(), 4000U);
}

TEST_F(Storm, IsMutedUnderOverflowAndTheStatusCountsIt) {
    renames(10, 3000);
    EXPECT_TRUE(turning_.until([&] { return play_.events.empty(); }));
    play_.loses = true;
    renames(10, 1);
    EXPECT_TRUE(turning_.until([&] { return play_.wanted.muted == std::vector{10}; }));
    const auto floods = instance_->status()["floods"];
    ASSERT_EQ(floods.size(), 1U);
    EXPECT_EQ(floods[0]["pid"], 10);
    EXPECT_GE(floods[0]["events_per_minute"], 60'000);
    EXPECT_TRUE(floods[0]["muted"]);
    EXPECT_TRUE(floods[0].contains("user"));
    EXPECT_TRUE(play_.wanted.exits) << "the rest of the filter stays";
}

TEST_F(Storm, WithoutEndLeavesTurnsToIdleWork) {
    unsigned turns = 0;
    Slices idle({[&](const auto&) { return ++turns, false; }, [] { return false; }, [] {}});
    idle.add_to(turning_.event());
    idle.begin();
    for (unsigned turn = 0; turn < 50; ++turn) {
        endless(static_cast<int>(1000 + turn));
        sd_event_run(turning_.event(), 10'000);
    }
    EXPECT_GE(turns, 10U);
    EXPECT_FALSE(play_.events.empty());
}

TEST_F(Storm, AsFastAsItIsHandledLeavesTurnsToOtherWork) {
    unsigned turns = 0;
    Slices other({[&](const auto&) { return ++turns, false; }, [] { return false; }, [] {}});
    other.add_to(turning_.event());
    other.begin();
    for (int turn = 0; turn < 2000; ++turn) {
        renames(1000 + turn, 2); // which one turn takes
        sd_event_run(turning_.event(), 10'000);
    }
    EXPECT_GE(turns, 20U);
    EXPECT_LE(turns, 1000U) << "events come first";
}

TEST_F(Storm, ATimeThatHasComeLeavesWhatWaitsItsTurn) {
    sd_event_source* source = nullptr;
    const auto wait = [](sd_event_source*, void* userdata) {
        static_cast<ProcessEvents*>(userdata)->wait_for_due(); // as the loop does after each turn
        return 0;
    };
    ASSERT_GE(sd_event_add_post(turning_.event(), &source, wait, events_.get()), 0);
    const Source after_all(source);
    endless(1000); // others come first from now on
    sd_event_run(turning_.event(), 10'000);
    instance_->tasks().events().later().look_at(20, 0, std::chrono::steady_clock::now());
    EXPECT_TRUE(turning_.until([&] { return instance_->knows(20) && play_.events.empty(); }));
}

TEST_F(BrokenSource, IsOpenedAgainAndAPassFollows) {
    play_.works_from = 3;
    start();
    EXPECT_TRUE(turning_.until([&] { return play_.opened == 3; }));
    EXPECT_TRUE(says("broke off"));
    EXPECT_TRUE(says("subscribed to again"));
    EXPECT_EQ(play_.drained, 2U) << "each broken one is read once";
    turning_.turn_for(milliseconds(300));
    EXPECT_EQ(play_.opened, 3U);
}

TEST_F(BrokenSource, DoesNotSpinTheLoopAndThePauseGrows) {
    play_.works_from = 1000;
    start();
    turning_.turn_for(milliseconds(1000));
    EXPECT_GE(play_.opened, 2U);
    EXPECT_LE(play_.opened, 6U) << "after 40, 80, 160, 320 ms";
    EXPECT_LE(play_.drained, play_.opened);
    // Unless the time was over right after it was opened.
    EXPECT_TRUE(turning_.until([&] { return !events_->waiting(); })) << "a pass need not make room for it";
}

TEST_F(BrokenSource, IsTriedAgainWhileItCannotBeOpened) {
    play_.works_from = 4;
    play_.open_error = EMFILE;
    start();
    EXPECT_TRUE(turning_.until([&] { return play_.opened == 4; }));
    EXPECT_TRUE(says("cannot be subscribed to"));
    EXPECT_TRUE(turning_.until([&] { return says("subscribed to again"); }));
}

TEST_F(BrokenSource, FilterThatFailsIsReportedAndSetByOpeningAgain) {
    machine_.policy("server", "match: {comm: server}\ncpus: \"2\"\nbind: set\n");
    machine_.process(500, "server");
    start();
    play_.takes_filters = false;
    instance_->tasks().process_changed(500);
    events_->follow();
    EXPECT_TRUE(says("no filter"));
    EXPECT_TRUE(turning_.until([&] { return play_.opened == 2; }));
    EXPECT_TRUE(play_.wanted.thread_forks);
}

} // namespace
} // namespace affinityd::events
