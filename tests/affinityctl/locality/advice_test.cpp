// SPDX-License-Identifier: Apache-2.0
// The advice, by the facts: a table.
#include "affinityctl/locality/report.hpp"
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

std::string with(void (*change)(LocalityFacts&)) {
    auto facts = usual();
    change(facts);
    return advice_for(facts).word;
}

TEST(Advice, FollowsTheFacts) {
    EXPECT_EQ(with([](LocalityFacts&) {}), "steer_accept");
    EXPECT_EQ(with([](LocalityFacts& facts) { facts.reads = 99; }), "watch_longer");
    EXPECT_EQ(with([](LocalityFacts& facts) { facts.reads = 0; }), "watch_longer");
    EXPECT_EQ(with([](LocalityFacts& facts) { facts.cpus = 1; }), "one_cpu");
    EXPECT_EQ(with([](LocalityFacts& facts) { facts.unknown = 10001; }), "not_known");
    EXPECT_EQ(with([](LocalityFacts& facts) { facts.unknown = 9999; }), "steer_accept");
    EXPECT_EQ(with([](LocalityFacts& facts) { facts.loopback = 6000; }), "loopback");
    EXPECT_EQ(with([](LocalityFacts& facts) { facts.same_core = 0.9; }), "nothing");
    EXPECT_EQ(with([](LocalityFacts& facts) { facts.arrival_cpus = 1; }), "more_queues");
    EXPECT_EQ(with([](LocalityFacts& facts) { facts.listeners = 1; }), "reuseport");
}

TEST(Advice, OfOneProcess) {
    EXPECT_EQ(with([](LocalityFacts& facts) {
                  facts.workers = 1;
                  facts.listeners = 1;
              }),
              "steer_flows");
    EXPECT_EQ(with([](LocalityFacts& facts) {
                  facts.workers = 1;
                  facts.listeners = 1;
                  facts.reader_cpus = 1;
              }),
              "bind_near");
    EXPECT_EQ(with([](LocalityFacts& facts) { facts.listeners = 0; }), "steer_clients");
    EXPECT_EQ(with([](LocalityFacts& facts) { facts.steered_by = "web"; }), "explain");
    EXPECT_EQ(with([](LocalityFacts& facts) {
                  facts.steered_by = "web";
                  facts.listeners = 1;
              }),
              "reuseport")
        << "a policy that cannot steer such a listener is no reason not to say what helps";
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
