// SPDX-License-Identifier: Apache-2.0
// What to do, by the facts: a table.
#include "affinityctl/locality/advice.hpp"
#include "locality/locality.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace affinityctl {

using namespace affinityd::locality;
namespace {

/// Two workers on 8 CPUs that read half of it on the core of arrival.
LocalityFacts usual() {
    return {.reads = 10000,
            .same_core = 0.5,
            .cpus = 8,
            .arrival_cpus = 2,
            .workers = 2,
            .reader_cpus = 2,
            .listeners = 2};
}

Advice with(void (*change)(LocalityFacts&)) {
    auto facts = usual();
    change(facts);
    return advice_for(facts);
}

TEST(Advice, FollowsTheFacts) {
    EXPECT_EQ(advice_for(usual()), Advice::steer_accept);
    EXPECT_EQ(with([](LocalityFacts& facts) { facts.reads = 99; }), Advice::watch_longer);
    EXPECT_EQ(with([](LocalityFacts& facts) { facts.reads = 0; }), Advice::watch_longer);
    EXPECT_EQ(with([](LocalityFacts& facts) { facts.cpus = 1; }), Advice::one_cpu);
    EXPECT_EQ(with([](LocalityFacts& facts) { facts.unknown = 10001; }), Advice::not_known);
    EXPECT_EQ(with([](LocalityFacts& facts) { facts.unknown = 9999; }), Advice::steer_accept);
    EXPECT_EQ(with([](LocalityFacts& facts) { facts.loopback = 6000; }), Advice::loopback);
    EXPECT_EQ(with([](LocalityFacts& facts) { facts.same_core = 0.9; }), Advice::nothing);
    EXPECT_EQ(with([](LocalityFacts& facts) { facts.arrival_cpus = 1; }), Advice::more_queues);
    EXPECT_EQ(with([](LocalityFacts& facts) { facts.listeners = 1; }), Advice::reuseport);
}

TEST(Advice, OfOneProcess) {
    EXPECT_EQ(with([](LocalityFacts& facts) {
                  facts.workers = 1;
                  facts.listeners = 1;
              }),
              Advice::steer_flows);
    EXPECT_EQ(with([](LocalityFacts& facts) {
                  facts.workers = 1;
                  facts.listeners = 1;
                  facts.reader_cpus = 1;
              }),
              Advice::bind_near);
    EXPECT_EQ(with([](LocalityFacts& facts) { facts.listeners = 0; }), Advice::steer_clients);
    EXPECT_EQ(with([](LocalityFacts& facts) { facts.steered_by = "web"; }), Advice::explain);
    EXPECT_EQ(with([](LocalityFacts& facts) {
                  facts.steered_by = "web";
                  facts.listeners = 1;
              }),
              Advice::reuseport)
        << "a policy that cannot steer such a listener is no reason not to say what helps";
}

TEST(Advice, AFewReadsAreNotEnough) {
    auto facts = usual();
    facts.reads = 25;
    EXPECT_EQ(advice_for(facts), Advice::watch_longer);
}

TEST(Advice, IsOneSentenceWithItsWord) {
    for (int number = 0; number <= static_cast<int>(Advice::explain); ++number) {
        const auto advice = static_cast<Advice>(number);
        const auto sentence = sentence_of(advice, usual());
        EXPECT_TRUE(sentence.ends_with('.')) << sentence;
        EXPECT_EQ(sentence.find(". "), std::string::npos) << sentence;
        EXPECT_FALSE(word_of(advice).empty());
        for (int other = 0; other < number; ++other)
            EXPECT_NE(word_of(advice), word_of(static_cast<Advice>(other)));
    }
    EXPECT_NE(sentence_of(Advice::steer_accept, usual()).find("steer: accept"), std::string::npos);
    EXPECT_NE(sentence_of(Advice::steer_flows, usual()).find("steer: flows"), std::string::npos);
}

TEST(Facts, WhoHasLessThanATwentiethDoesNotCount) {
    ReadCounts seen;
    const auto add = [&](int pid, unsigned arrival, unsigned reader, std::uint64_t reads) {
        seen.counts.push_back(
            {.pid = pid, .device = pid == 3 ? 1U : 2U, .arrival = arrival, .reader = reader, .reads = reads});
    };
    add(1, 0, 0, 500);
    add(2, 0, 1, 480);
    add(3, 1, 2, 20);
    const auto all = [](int) { return true; };
    const auto facts = facts_of(figures_of(seen, Nearness({}), all), seen.counts, all);
    EXPECT_EQ(facts.reads, 1000U);
    EXPECT_EQ(facts.workers, 2U);
    EXPECT_EQ(facts.arrival_cpus, 1U);
    EXPECT_EQ(facts.reader_cpus, 2U);
    EXPECT_EQ(facts.loopback, 20U);
    EXPECT_NEAR(facts.same_core, 0.5, 1e-9);
}

} // namespace
} // namespace affinityctl
