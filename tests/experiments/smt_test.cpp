// SPDX-License-Identifier: Apache-2.0
#include "experiments/frame.hpp"
#include "experiments/smt.hpp"
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

SmtResult document_times(double accum_pair, double sine_pair) {
    SmtResult times;
    const auto add = [&](Load load, Company company, double ms) {
        SmtCase one{{}, load, company, {0, company == Company::alone ? 0U : 1U}};
        for (int round = 0; round < 9; ++round) {
            one.first.push_back(ms * 1e-3 * (1 + 0.002 * (round % 3 - 1)));
            if (company != Company::alone) one.second.push_back(ms * 1e-3);
            one.seconds.push_back(company == Company::alone ? one.first.back()
                                                            : (one.first.back() + one.second.back()) / 2);
        }
        times.cases.push_back(one);
    };
    add(Load::accum, Company::alone, 92);
    add(Load::accum, Company::cores, 92);
    add(Load::accum, Company::siblings, accum_pair);
    add(Load::sine, Company::alone, 540);
    add(Load::sine, Company::cores, 541);
    add(Load::sine, Company::siblings, sine_pair);
    return times;
}

SmtResult read(SmtResult result, const SmtSeats& seats) {
    read_smt(result, seats);
    return result;
}

const SmtSeats with_smt{
    .alone = 0, .cores = CpuPair{0, 2}, .siblings = CpuPair{0, 1}, .no_cores = {}, .no_siblings = {}};

TEST(SmtReading, GivesTheDocumentsVerdicts) {
    const auto reading = read(document_times(92, 945), with_smt);
    ASSERT_EQ(reading.loads.size(), 2U);
    EXPECT_EQ(reading.loads[0].verdict, "smt: share");
    EXPECT_EQ(reading.loads[1].verdict, "smt: avoid");
    EXPECT_NEAR(reading.loads[1].gain_together.change.estimate, 1080.0 / 945 - 1, 0.01);
    EXPECT_NEAR(reading.cases[5].longer.change.estimate, 0.75, 0.01);
    EXPECT_NE(reading.meaning.find("smt: avoid where each answer's time counts; smt: share where only"),
              std::string::npos)
        << reading.meaning;
    EXPECT_NE(reading.summary.find("sin: alone 540 ms, two cores 541 ms, one core 945 ms, smt: avoid"),
              std::string::npos)
        << reading.summary;
    const auto worse = read(document_times(92, 1300), with_smt);
    EXPECT_EQ(worse.loads[1].gain_together.verdict, measure::Verdict::less);
    EXPECT_EQ(worse.meaning.find("smt: share where only"), std::string::npos);
}

TEST(SmtReading, KnowsWhatItDoesNotKnow) {
    measure::Comparison longer{measure::Verdict::more, {0.06, 0.01, 0.11}};
    EXPECT_EQ(smt_verdict(longer), "no difference shown") << "both are within the interval";
    longer.change = {0.02, 0.01, 0.03};
    EXPECT_EQ(smt_verdict(longer), "smt: share") << "shown, but little";
    longer.change = {-0.1, -0.2, -0.05};
    EXPECT_EQ(smt_verdict(longer), "smt: share");
    EXPECT_EQ(smt_verdict({}), "not measured");
    auto few = document_times(92, 945);
    for (auto& one : few.cases) {
        one.seconds.resize(3);
    }
    EXPECT_EQ(read(few, with_smt).loads[0].verdict, "not measured");
    SmtSeats without = with_smt;
    without.siblings.reset();
    without.no_siblings = "no core has two";
    auto times = document_times(92, 945);
    std::erase_if(times.cases, [](const auto& one) { return one.company == Company::siblings; });
    const auto reading = read(times, without);
    EXPECT_EQ(reading.loads[1].verdict, "not measured");
    EXPECT_NE(reading.meaning.find("nothing to decide here: no core has two"), std::string::npos);
}

TEST(SmtReading, SaysThatItCannotTellWhereTheIntervalIsWide) {
    auto noisy = document_times(92, 945);
    for (auto& one : noisy.cases)
        for (std::size_t i = 0;
             one.load == Load::accum && one.company != Company::alone && i < one.seconds.size(); ++i)
            one.seconds[i] *= i % 2 == 0 ? 0.7 : 1.4;
    const auto reading = read(noisy, with_smt);
    const auto cannot_tell = [](const std::string& finding) {
        return finding.find("more rounds would tell") != std::string::npos;
    };
    EXPECT_TRUE(cannot_tell(reading.findings.at(0))) << reading.findings[0];
    const auto quiet = read(document_times(92, 945), with_smt);
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
    ASSERT_EQ(times->cases.size(), 4U);
    EXPECT_EQ(times->cases[0].first.size(), 2U);
    EXPECT_TRUE(times->cases[0].second.empty());
    EXPECT_EQ(times->cases[3].second.size(), 2U);
    EXPECT_GT(times->cases[3].second[1], 0);
    const SmtSeats nowhere{.alone = own.first(),
                           .cores = CpuPair{own.first(), CpuSet::max_cpu},
                           .siblings = {},
                           .no_cores = {},
                           .no_siblings = {}};
    EXPECT_FALSE(measure_smt(nowhere, {.rounds = 1, .numbers = 10}, run))
        << "and does not wait for it either";
}

} // namespace
} // namespace affinityd::experiments
