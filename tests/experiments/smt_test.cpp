// SPDX-License-Identifier: Apache-2.0
#include "experiments/frame/supervision.hpp"
#include "experiments/smt/launch.hpp"
#include "experiments/smt/reading.hpp"
#include "host/scheduler.hpp"
#include "machine/machines.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

namespace affinityd::experiments {
namespace {

using machine::test::two_sockets;

TEST(SmtSeats, AreOneCoreAndTheNearestOther) {
    const auto all = smt_seats(two_sockets(), CpuSet::range(0, 7)).value();
    EXPECT_EQ(all.alone, 0U);
    EXPECT_EQ(all.siblings, (CpuPair{0, 1}));
    EXPECT_EQ(all.cores, (CpuPair{0, 2}));
    EXPECT_TRUE(all.no_siblings.empty() && all.no_cores.empty());
    const auto some = smt_seats(two_sockets(), CpuSet{0, 3, 4, 5}).value();
    EXPECT_EQ(some.alone, 4U) << "the core with two threads";
    EXPECT_EQ(some.siblings, (CpuPair{4, 5}));
    EXPECT_EQ(some.cores, (CpuPair{0, 4})) << "no CPU of its own socket is left";
}

TEST(SmtSeats, SayWhatIsMissing) {
    const auto cores = smt_seats(two_sockets(), CpuSet{1, 2, 6}).value();
    EXPECT_FALSE(cores.siblings);
    EXPECT_EQ(cores.no_siblings, "no core has two hardware threads among CPUs 1-2,6, which may be used here");
    EXPECT_EQ(cores.cores, (CpuPair{1, 2}));
    const auto one = smt_seats(two_sockets(), CpuSet{6, 7}).value();
    EXPECT_EQ(one.siblings, (CpuPair{6, 7}));
    EXPECT_FALSE(one.cores);
    EXPECT_NE(one.no_cores.find("are hardware threads of one"), std::string::npos);
    EXPECT_EQ(smt_seats(two_sockets(), CpuSet{6}).error(), Refusal::one_cpu);
}

SmtTimes document_times(double accum_pair, double sine_pair) {
    SmtTimes times;
    const auto add = [&](Load load, Company company, double ms) {
        CompanyTimes one{load, company, {0, company == Company::alone ? 0U : 1U}, {}, {}};
        for (int round = 0; round < 9; ++round) {
            one.first.push_back(ms * 1e-3 * (1 + 0.002 * (round % 3 - 1)));
            if (company != Company::alone) one.second.push_back(ms * 1e-3);
        }
        times.companies.push_back(one);
    };
    add(Load::accum, Company::alone, 92);
    add(Load::accum, Company::cores, 92);
    add(Load::accum, Company::siblings, accum_pair);
    add(Load::sine, Company::alone, 540);
    add(Load::sine, Company::cores, 541);
    add(Load::sine, Company::siblings, sine_pair);
    return times;
}

const SmtSeats with_smt{
    .alone = 0, .cores = CpuPair{0, 2}, .siblings = CpuPair{0, 1}, .no_cores = {}, .no_siblings = {}};

TEST(SmtReading, GivesTheDocumentsVerdicts) {
    const auto reading = read_smt(document_times(92, 945), with_smt);
    ASSERT_EQ(reading.loads.size(), 2U);
    EXPECT_EQ(reading.loads[0].verdict, SmtVerdict::share);
    EXPECT_EQ(reading.loads[1].verdict, SmtVerdict::avoid);
    EXPECT_NEAR(*reading.loads[1].gain_together, 1080.0 / 945 - 1, 0.01);
    EXPECT_NEAR(reading.companies[5].longer.change.estimate, 0.75, 0.01);
    EXPECT_NE(reading.meaning.find("smt: avoid where each answer's time counts; smt: share where only"),
              std::string::npos)
        << reading.meaning;
    EXPECT_NE(
        summary_of(reading).find("sin: alone 540.00 ms, two cores 541.00 ms, one core 945.00 ms, smt: avoid"),
        std::string::npos)
        << summary_of(reading);
    const auto worse = read_smt(document_times(92, 1300), with_smt);
    EXPECT_LT(*worse.loads[1].gain_together, 0);
    EXPECT_EQ(worse.meaning.find("smt: share where only"), std::string::npos);
}

TEST(SmtReading, KnowsWhatItDoesNotKnow) {
    measure::Comparison longer{measure::Verdict::more, {0.06, 0.01, 0.11}};
    EXPECT_EQ(verdict_of(longer), SmtVerdict::none_shown) << "both are within the interval";
    longer.change = {0.02, 0.01, 0.03};
    EXPECT_EQ(verdict_of(longer), SmtVerdict::share) << "shown, but little";
    longer.change = {-0.1, -0.2, -0.05};
    EXPECT_EQ(verdict_of(longer), SmtVerdict::share);
    EXPECT_EQ(verdict_of({}), SmtVerdict::not_measured);
    auto few = document_times(92, 945);
    for (auto& one : few.companies) {
        one.first.resize(3);
        one.second.resize(std::min<std::size_t>(3, one.second.size()));
    }
    EXPECT_EQ(read_smt(few, with_smt).loads[0].verdict, SmtVerdict::not_measured);
    SmtSeats without = with_smt;
    without.siblings.reset();
    without.no_siblings = "no core has two";
    auto times = document_times(92, 945);
    std::erase_if(times.companies, [](const auto& one) { return one.company == Company::siblings; });
    const auto reading = read_smt(times, without);
    EXPECT_EQ(reading.loads[1].verdict, SmtVerdict::not_measured);
    EXPECT_NE(reading.meaning.find("nothing to decide here: no core has two"), std::string::npos);
}

TEST(SmtReading, SaysThatItCannotTellWhereTheIntervalIsWide) {
    auto noisy = document_times(92, 945);
    for (auto& one : noisy.companies)
        for (std::size_t i = 0; one.load == Load::accum && i < one.first.size(); ++i)
            one.first[i] *= i % 2 == 0 ? 0.7 : 1.4;
    const auto reading = read_smt(noisy, with_smt);
    const auto cannot_tell = [](const std::string& finding) {
        return finding.find("more rounds would tell") != std::string::npos;
    };
    EXPECT_TRUE(cannot_tell(reading.findings.at(0))) << reading.findings[0];
    const auto quiet = read_smt(document_times(92, 945), with_smt);
    EXPECT_TRUE(std::ranges::none_of(quiet.findings, cannot_tell));
}

TEST(Loads, DoTheirWork) {
    const auto numbers = numbers_for_loads(1000);
    EXPECT_TRUE(std::ranges::all_of(numbers, [](float number) { return number >= 0 && number < 100; }));
    EXPECT_FLOAT_EQ(work(Load::accum, numbers), std::accumulate(numbers.begin(), numbers.end(), 0.0F));
    float sines = 0;
    for (const float number : numbers)
        sines += std::sin(number);
    EXPECT_NEAR(work(Load::sine, numbers), sines, 0.01);
}

TEST(MeasuresSmt, OnThisMachine) {
    const auto own = host::get_affinity(0).value();
    ASSERT_GE(own.count(), 2U);
    const SmtSeats seats{.alone = own.first(),
                         .cores = CpuPair{own.first(), own.last()},
                         .siblings = {},
                         .no_cores = {},
                         .no_siblings = "none"};
    experiments::Run run;
    const auto times = measure_smt(seats, {.rounds = 2, .numbers = 1000}, run);
    ASSERT_TRUE(times) << times.error().to_string();
    ASSERT_EQ(times->companies.size(), 4U);
    EXPECT_EQ(times->companies[0].first.size(), 2U);
    EXPECT_TRUE(times->companies[0].second.empty());
    EXPECT_EQ(times->companies[3].second.size(), 2U);
    EXPECT_GT(times->companies[3].second[1], 0);
    const SmtSeats nowhere{.alone = own.first(),
                           .cores = CpuPair{own.first(), CpuSet::max_cpu},
                           .siblings = {},
                           .no_cores = {},
                           .no_siblings = {}};
    EXPECT_FALSE(measure_smt(nowhere, {.rounds = 1, .numbers = 10}, run))
        << "and does not wait for it either";
}

TEST(Launch, ShowsWhereThreadsRun) {
    const auto own = host::get_affinity(0).value();
    const experiments::Run run;
    const auto launched = launch_threads(own, run);
    ASSERT_TRUE(launched) << launched.error().to_string();
    EXPECT_EQ(launched->size(), std::min<std::size_t>(4, own.count()));
    for (const auto& thread : *launched) {
        EXPECT_EQ(thread.before.size(), 10U);
        EXPECT_EQ(thread.after, std::vector<unsigned>(10, thread.pinned_to));
    }
    const auto rows = topology_rows(two_sockets());
    const std::vector<std::pair<std::string, std::string>> wanted{
        {"Threads per core", "2"}, {"Cores per socket", "2"}, {"Sockets", "2"}};
    EXPECT_NE(std::ranges::search(rows, wanted).begin(), rows.end());
}

} // namespace
} // namespace affinityd::experiments
