// SPDX-License-Identifier: Apache-2.0
// Threads, signals and words of the frame.
#include "experiments/frame.hpp"
#include "experiments/nearness.hpp"
#include "host/scheduler.hpp"

#include <csignal>
#include <fstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::experiments {
namespace {

using Watched = experiments::Run; // a test has a Run of its own

/// A line of /proc/thread-self/status of the calling thread, read as another program would.
std::string status_line(const std::string& name) {
    std::ifstream status("/proc/thread-self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with(name + ":")) return line.substr(name.size() + 2);
    return {};
}

TEST(PinnedThread, RunsWhereItShould) {
    const auto before = *host::get_affinity(0);
    for (const unsigned cpu : before) {
        std::string list;
        int where = -1;
        auto thread = PinnedThread::start(CpuSet{cpu}, [&] {
            list = status_line("Cpus_allowed_list");
            where = ::sched_getcpu();
        });
        ASSERT_TRUE(thread) << thread.error().to_string();
        thread->join();
        EXPECT_EQ(list, std::to_string(cpu));
        EXPECT_EQ(where, static_cast<int>(cpu));
    }
    EXPECT_EQ(*host::get_affinity(0), before) << "this thread is where it was";
}

TEST(PinnedThread, ThatMayNotRunThereIsAnError) {
    bool was_called = false;
    const auto thread = PinnedThread::start(CpuSet{CpuSet::max_cpu}, [&] { was_called = true; });
    ASSERT_FALSE(thread);
    EXPECT_NE(thread.error().to_string().find("1048575"), std::string::npos) << thread.error().to_string();
    EXPECT_FALSE(was_called);
}

TEST(PinnedThread, IsAwaitedByWhoDropsIt) {
    std::atomic<bool> ended{false};
    {
        const auto thread = PinnedThread::start(*host::get_affinity(0), [&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            ended = true;
        });
        ASSERT_TRUE(thread);
    }
    EXPECT_TRUE(ended);
}

TEST(Supervision, ReturnsWhenTheExperimentHas) {
    std::string blocked;
    int nice = -100;
    const auto ending = supervise({.doing = "testing"}, [&](Watched& run) {
        run.advance(1, 2);
        blocked = status_line("SigBlk");
        nice = ::getpriority(PRIO_PROCESS, 0);
        EXPECT_FALSE(run.is_stopped());
    });
    ASSERT_TRUE(ending);
    EXPECT_EQ(*ending, Ending::done);
    EXPECT_EQ(std::stoull(blocked, nullptr, 16) & 0x4003U, 0x4003U) << "SIGHUP, SIGINT and SIGTERM";
    EXPECT_EQ(nice, ::getpriority(PRIO_PROCESS, 0));
    sigset_t now;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
    EXPECT_FALSE(::sigismember(&now, SIGINT)) << "of this thread they are as before";
}

TEST(Supervision, EndsWhenAsked) {
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        (void)std::signal(number, SIG_DFL); // a shell has what it starts in the background ignore some
        const auto ending = supervise({.doing = "testing"}, [number](Watched& run) {
            ::kill(::getpid(), number);
            while (!run.is_stopped())
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
        });
        ASSERT_TRUE(ending);
        EXPECT_EQ(*ending, Ending::stopped);
    }
}

TEST(Supervision, GoesOnAfterWhatTheProgramIgnores) {
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
        const auto before = std::signal(number, SIG_IGN);
        const auto ending = supervise({.doing = "testing"}, [number](Watched& run) {
            ::kill(::getpid(), number);
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            EXPECT_FALSE(run.is_stopped()) << number << ", as under nohup(1)";
        });
        (void)std::signal(number, before);
        ASSERT_TRUE(ending);
        EXPECT_EQ(*ending, Ending::done);
    }
}

TEST(Supervision, EndsTheProgramWhenAskedTwice) {
    const int child = ::fork();
    if (child == 0) {
        (void)std::signal(SIGINT, SIG_DFL);
        (void)std::signal(SIGTERM, SIG_DFL);
        (void)supervise({.doing = "testing"}, [](Watched& run) {
            ::kill(::getpid(), SIGINT);
            while (!run.is_stopped())
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            ::kill(::getpid(), SIGTERM);
            for (;;)
                ::pause();
        });
        ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 128 + SIGTERM);
}

TEST(Supervision, RaisesThePriorityOfItsThreadsOnly) {
    int nice = 0;
    const auto ending = supervise({.doing = "testing", .wants_priority = true},
                                  [&](Watched&) { nice = ::getpriority(PRIO_PROCESS, 0); });
    if (::geteuid() != 0 && !ending) {
        EXPECT_EQ(ending.error().code, EACCES) << "a user may not, and is told";
        return;
    }
    ASSERT_TRUE(ending) << ending.error().to_string();
    EXPECT_EQ(nice, -10);
    EXPECT_NE(::getpriority(PRIO_PROCESS, 0), -10);
}

TEST(ProgressBar, FitsItsLine) {
    EXPECT_EQ(progress_bar("measuring", 0, 0, 100), "measuring [------------------------] 0 %");
    EXPECT_EQ(progress_bar("measuring", 0.5, 90, 100),
              "measuring [############------------] 50 %, 90 s left");
    EXPECT_EQ(progress_bar("measuring", 0.5, 90, 34), "measuring [###---] 50 %, 90 s left")
        << "the bar gives way, the figures stay";
    EXPECT_EQ(progress_bar("measuring", 1.5, 0, 20).size(), 20U);
}

TEST(TimeWords, AreAsPeopleSayThem) {
    for (const auto& [seconds, words] :
         std::initializer_list<std::pair<double, std::string>>{{-1, "under 1 s"},
                                                               {0.3, "under 1 s"},
                                                               {1, "1 s"},
                                                               {59.6, "60 s"},
                                                               {100, "2 min"},
                                                               {5400, "90 min"},
                                                               {6000, "1 h 40 min"},
                                                               {7200, "2 h"}})
        EXPECT_EQ(time_words(seconds), words);
}

constexpr const char* first_stat = "cpu  100 0 100 1000 0 0 0 0 0 0\n"
                                   "cpu0 50 0 50 500 0 0 0 0 0 0\ncpu1 50 0 50 500 0 0 0 0 0 0\n"
                                   "cpu7 9 9 9 9 9 9 9 9 9 9\nintr 1 2 3\n";

TEST(Quiet, CountsWhatIsNotIdle) {
    const auto quiet = quiet_between(first_stat,
                                     "cpu  1 2\ncpu0 50 0 50 600 0 0 0 0 0 0\n"
                                     "cpu1 100 0 70 520 5 3 2 0 0 0\n",
                                     CpuSet{0, 1, 3});
    ASSERT_TRUE(quiet);
    EXPECT_DOUBLE_EQ(quiet->busy, 75.0 / 200);
    EXPECT_DOUBLE_EQ(quiet->busiest, 0.75);
    EXPECT_EQ(quiet->busiest_cpu, 1U);
    EXPECT_FALSE(quiet->is_enough());
    EXPECT_NE(remark_of(*quiet).find("38 % of the time (CPU 1: 75 %)"), std::string::npos)
        << remark_of(*quiet);
}

TEST(Quiet, IsEnoughWhereHardlyAnythingRuns) {
    const auto quiet = quiet_between(
        first_stat, "cpu0 51 0 50 600 0 0 0 0 0 0\ncpu1 50 0 50 601 0 0 0 0 0 0\n", CpuSet{0, 1});
    ASSERT_TRUE(quiet);
    EXPECT_TRUE(quiet->is_enough());
    EXPECT_EQ(remark_of(*quiet), "");
}

TEST(Quiet, TellsWhatAHypervisorTook) {
    const auto quiet = quiet_between(first_stat, "cpu0 50 0 50 580 0 0 0 20 0 0\n", CpuSet{0});
    ASSERT_TRUE(quiet);
    EXPECT_DOUBLE_EQ(quiet->stolen, 0.2);
    EXPECT_NE(remark_of(*quiet).find("hypervisor took 20 %"), std::string::npos);
}

TEST(Quiet, IsNotKnownWithoutFigures) {
    EXPECT_FALSE(quiet_between("", "", CpuSet{0}));
    EXPECT_FALSE(quiet_between(first_stat, first_stat, CpuSet{0})) << "no time went by";
    EXPECT_FALSE(quiet_between(first_stat, "cpu0 1 0 1 1\n", CpuSet{0})) << "a counter that starts over";
    EXPECT_FALSE(quiet_between("cpu0\ncpux 1\ncpu0 a b c", "cpu0 \xff", CpuSet{0}));
}

TEST(Refusals, SayWhatMayBeUsed) {
    EXPECT_EQ(sentence_of(Refusal::one_cpu, CpuSet{3}),
              "this needs two CPUs, and only CPU 3 may be used here");
    EXPECT_EQ(sentence_of(Refusal::no_smt, CpuSet{2, 3}),
              "no core has two hardware threads among CPUs 2-3, which may be used here");
    EXPECT_EQ(sentence_of(Refusal::one_core, CpuSet{2, 3}),
              "this needs two cores, and CPUs 2-3, which may be used here, are hardware threads of one");
    EXPECT_EQ(sentence_of(Refusal::one_llc, CpuSet{3}),
              "CPU 3, which may be used here, has one last-level cache, so there is no other one to compare "
              "with");
    for (const auto refusal : {Refusal::one_cpu, Refusal::no_smt, Refusal::one_core, Refusal::one_llc})
        EXPECT_EQ(sentence_of(refusal, {}), "none of these CPUs may be used here");
}

TEST(Refusals, SayWhatToTypeInstead) {
    EXPECT_EQ(refusal_of(Refusal::one_cpu, {}),
              "none of these CPUs may be used here: name others with --cpus, or leave that out; grep "
              "Cpus_allowed_list /proc/self/status lists those that may be used");
    EXPECT_EQ(refusal_of(Refusal::one_cpu, CpuSet{3}),
              "this needs two CPUs, and only CPU 3 may be used here: name more with --cpus; grep "
              "Cpus_allowed_list /proc/self/status lists those that may be used");
    EXPECT_EQ(refusal_of(Refusal::one_llc, CpuSet{0, 1}),
              "CPUs 0-1, which may be used here, share one last-level cache, so there is no other one to "
              "compare with: name CPUs of several with --cpus, or choose --pairs core; affinityctl topology "
              "shows them");
    EXPECT_NE(refusal_of(Refusal::one_core, CpuSet{0, 1}).find("choose --pairs all"), std::string::npos);
    EXPECT_NE(refusal_of(Refusal::no_caches, CpuSet{0}).find("ls /sys/"), std::string::npos);
}

TEST(Timings, AreMeansOfTimes) {
    const std::vector<double> times{1, 2, 3, 4, 5, 6};
    const auto mean = mean_time(times);
    ASSERT_TRUE(mean);
    EXPECT_NEAR(mean->estimate, 3.5, 1e-9) << "not of rates";
    EXPECT_LT(mean->low, 3.5);
    EXPECT_GT(mean->high, 3.5);
    EXPECT_FALSE(mean_time(std::vector<double>{1, 2, 3}));
    EXPECT_FALSE(mean_time(std::vector<double>{1, 2, 3, 0}));
}

TEST(Timings, CompareByHowMuchLonger) {
    const std::vector<double> base{1.00, 1.01, 0.99, 1.00, 1.02}, slow{1.75, 1.76, 1.74, 1.75, 1.77};
    const auto longer = measure::compare_times(base, slow);
    EXPECT_EQ(longer.verdict, measure::Verdict::more);
    EXPECT_NEAR(longer.change.estimate, 8.77 / 5.02 - 1, 1e-9);
    const auto shorter = measure::compare_times(slow, base);
    EXPECT_EQ(shorter.verdict, measure::Verdict::less);
    EXPECT_LT(shorter.change.high, 0);
    EXPECT_EQ(measure::compare_times(base, base).verdict, measure::Verdict::none_shown);
    EXPECT_EQ(measure::compare_times({}, slow).verdict, measure::Verdict::not_enough);
    std::vector<double> one, other;
    for (int i = 0; i < 20; ++i) {
        one.push_back(1 + 0.01 * (i * 7 % 20));
        other.push_back(1.5 + 0.01 * (i * 3 % 20));
    }
    EXPECT_GT(measure::compare_times(one, other, 10).change.high,
              measure::compare_times(one, other).change.high)
        << "all of ten hold together";
}

} // namespace
} // namespace affinityd::experiments
