// SPDX-License-Identifier: Apache-2.0
// Passes at intervals and after requests, and long work in slices.
#include "events/pass_schedule.hpp"
#include "events/slices.hpp"
#include "host/fd.hpp"
#include "turning.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>

namespace affinityd::events {
namespace {

using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::Turning;

struct Passes {
    unsigned regular = 0, requested = 0;
    std::function<void(bool)> begin = [this](bool periodic) { ++(periodic ? regular : requested); };
};

TEST(PassSchedule, ABurstOfRequestsIsOnePass) {
    const Turning turning;
    Passes passes;
    PassSchedule schedule(hours(1), passes.begin);
    ASSERT_TRUE(schedule.add_to(turning.event()));
    for (int i = 0; i < 100; ++i)
        schedule.begin_soon();
    EXPECT_EQ(passes.requested, 0U) << "not at once: more may follow";
    EXPECT_TRUE(turning.until([&] { return passes.requested > 0; }));
    turning.turn_for(milliseconds(500));
    EXPECT_EQ(passes.requested, 1U);
    schedule.begin_soon();
    EXPECT_TRUE(turning.until([&] { return passes.requested == 2; })) << "a later request is another one";
    EXPECT_EQ(passes.regular, 0U);
}

TEST(PassSchedule, RequestsAllTheTimeDoNotPutThePassOff) {
    const Turning turning;
    Passes passes;
    PassSchedule schedule(hours(1), passes.begin);
    ASSERT_TRUE(schedule.add_to(turning.event()));
    EXPECT_TRUE(turning.until([&] {
        schedule.begin_soon();
        return passes.requested >= 2;
    }));
}

TEST(PassSchedule, RegularPassesComeAgainAndAgainUntilTheEnd) {
    const Turning turning;
    Passes passes;
    PassSchedule schedule(seconds(1), passes.begin);
    ASSERT_TRUE(schedule.add_to(turning.event()));
    EXPECT_TRUE(turning.until([&] { return passes.regular == 2; }, milliseconds(30'000)));
    schedule.begin_soon();
    schedule.end();
    const auto before = passes.regular;
    turning.turn_for(milliseconds(1500));
    EXPECT_EQ(passes.regular, before);
    EXPECT_EQ(passes.requested, 0U);
}

TEST(Slices, EachEndsByTheClockAndOthersAreServedBetweenThem) {
    const Turning turning;
    unsigned slices = 0, done = 0, timers = 0;
    bool is_wanted = false;
    Slices work({[&](const auto& out_of_time) {
                     for (unsigned long spun = 0; !out_of_time(); ++spun)
                         if (spun > 1'000'000'000UL) ADD_FAILURE() << "a slice without an end";
                     return ++slices % 20 == 0;
                 },
                 [&] { return is_wanted; }, [&] { ++done; }});
    work.add_to(turning.event());
    turning.turn_for(milliseconds(50));
    EXPECT_EQ(slices, 0U) << "without work it sleeps";
    Timer timer([&] { ++timers; });
    ASSERT_TRUE(timer.add_to(turning.event()));
    timer.arm(milliseconds(5));
    work.begin();
    EXPECT_TRUE(turning.until([&] { return done == 1; }));
    EXPECT_EQ(slices, 20U);
    EXPECT_EQ(timers, 1U) << "the timer was due long before the work was over";
    is_wanted = true; // shorter slices are slices all the same
    work.begin();
    EXPECT_TRUE(turning.until([&] { return done == 2; }));
    EXPECT_EQ(slices, 40U);
    turning.turn_for(milliseconds(50));
    EXPECT_EQ(slices, 40U);
}

TEST(Slices, WorkThatBeginsMoreOfItIsCalledAgain) {
    const Turning turning;
    unsigned slices = 0;
    Slices* more = nullptr;
    Slices work({[&](const auto&) {
                     if (++slices < 3) more->begin();
                     return true;
                 },
                 [] { return false; }, [] {}});
    more = &work;
    work.add_to(turning.event());
    work.begin();
    EXPECT_TRUE(turning.until([&] { return slices == 3; }, milliseconds(2000)));
    turning.turn_for(milliseconds(50));
    EXPECT_EQ(slices, 3U);
}

/// As a socket is at which anybody may connect, again and again.
TEST(Slices, WithoutEndTakeTurnsWithADescriptorAsImportantThatIsAlwaysReady) {
    constexpr int turns = 90;
    const Turning turning;
    int slices = 0, served = 0;
    Slices work({[&](const auto&) { return ++slices, false; }, [] { return false; }, [] {}});
    work.add_to(turning.event());
    const host::Fd ready(::eventfd(1, EFD_CLOEXEC));
    const auto serve = [](sd_event_source*, int, std::uint32_t, void* count) {
        return ++*static_cast<int*>(count), 0;
    };
    sd_event_source* source = nullptr;
    ASSERT_GE(sd_event_add_io(turning.event(), &source, ready.get(), EPOLLIN, serve, &served), 0);
    const Source descriptor(source);
    sd_event_source_set_priority(source, SD_EVENT_PRIORITY_IDLE);
    work.begin();
    for (int turn = 0; turn < turns; ++turn)
        sd_event_run(turning.event(), 0);
    EXPECT_EQ(slices + served, turns);
    EXPECT_GE(slices, turns / 3);
    EXPECT_GE(served, turns / 3);
}

TEST(Timer, ADisarmedOneDoesNotCall) {
    const Turning turning;
    unsigned called = 0;
    Timer timer([&] { ++called; });
    ASSERT_TRUE(timer.add_to(turning.event()));
    EXPECT_FALSE(timer.is_armed());
    timer.arm(milliseconds(20));
    EXPECT_TRUE(timer.is_armed());
    timer.disarm();
    turning.turn_for(milliseconds(100));
    EXPECT_EQ(called, 0U);
    timer.arm(milliseconds(1));
    EXPECT_TRUE(turning.until([&] { return called == 1; }));
    EXPECT_FALSE(timer.is_armed()) << "once";
}

} // namespace
} // namespace affinityd::events
