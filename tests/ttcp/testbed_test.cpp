// SPDX-License-Identifier: Apache-2.0
// As root this makes namespaces of its own; other users check that the refusal is reported.
#include "affinity-ttcp/models/report.hpp"
#include "affinity-ttcp/models/round.hpp"
#include "affinity-ttcp/testbed/network_space.hpp"
#include "host/scheduler.hpp"
#include "own_root.hpp"

#include <cerrno>
#include <csignal>
#include <set>
#include <utility>

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

namespace affinityd::ttcp {
namespace {

using measure::Outcome;
using measure::Verdict;
using test::root;

/// A testbed; no value where this user may not make one. Any other fault is a failure.
std::optional<Testbed> testbed_of(unsigned connections) {
    auto testbed = make_veth_testbed(root(), connections);
    if (testbed) return std::move(*testbed);
    EXPECT_NE(::geteuid(), 0U) << testbed.error().to_string();
    EXPECT_EQ(testbed.error().code, EPERM) << testbed.error().to_string();
    EXPECT_NE(testbed.error().message.find("root is needed"), std::string::npos);
    return std::nullopt;
}

RoundSetup quick() {
    RoundSetup setup;
    setup.seconds = 0.15;
    setup.cpus = host::get_affinity(0).value();
    return setup;
}

bool eventually_gone(int tid) {
    for (int i = 0; i < 500; ++i, ::usleep(10000)) // the kernel removes namespaces in the background
        if (!root().proc().exists(std::to_string(tid))) return true;
    return false;
}

TEST(Testbed, EndsWithItsObject) {
    const auto own = root().proc().link("self/ns/net");
    std::vector<int> tids;
    {
        const auto testbed = testbed_of(3);
        EXPECT_EQ(root().proc().link("self/ns/net"), own); // this process is in its own namespace again
        if (!testbed) return;
        ASSERT_EQ(testbed->paths.size(), 3U);
        for (const auto& path : testbed->paths) {
            ASSERT_EQ(path.threads.size(), 1U);
            tids.push_back(path.threads[0]);
            EXPECT_TRUE(testbed->spaces[0].sys().exists("class/net/" + path.nic));
            EXPECT_FALSE(root().sys().exists("class/net/" + path.nic));
        }
        const CpuSet one{host::get_affinity(0).value().last()};
        ASSERT_TRUE(place_interrupts(root(), testbed->paths[1], one));
        EXPECT_EQ(host::get_affinity(tids[1]), one);
        EXPECT_NE(testbed->description.find("no NIC"), std::string::npos);
    }
    for (const int tid : tids)
        EXPECT_TRUE(eventually_gone(tid)) << tid;
}

TEST(Testbed, InterfacesOfTwoAtOnceDifferInName) { // by which their NAPI threads are found
    const auto one = testbed_of(most_connections), other = testbed_of(1);
    if (!one || !other) return;
    std::set<std::string> names{other->paths[0].nic};
    for (const auto& path : one->paths) {
        EXPECT_TRUE(names.insert(path.nic).second) << path.nic;
        EXPECT_LE(path.nic.size(), 8U) << path.nic;
        EXPECT_EQ(path.threads.size(), 1U) << path.nic;
    }
}

TEST(Testbed, RefusesCountsOutOfRange) {
    EXPECT_FALSE(make_veth_testbed(root(), 0));
    EXPECT_FALSE(make_veth_testbed(root(), most_connections + 1));
}

TEST(Round, BytesArriveOverThePathsUnderTest) {
    const auto testbed = testbed_of(2);
    if (!testbed) return;
    for (const Work work : {Work::receive, Work::transmit, Work::answer}) {
        auto setup = quick();
        setup.point = {work, 4096, 512};
        const auto round = run_round(root(), *testbed, setup, Model::full);
        ASSERT_TRUE(round) << round.error().reason;
        EXPECT_GT(round->sample.bytes, 4608U);
        EXPECT_GT(round->sample.bits_per_second, 0);
        EXPECT_GT(round->sample.cpu_seconds.processes, 0);
        EXPECT_GT(round->sample.cpu_seconds.softirq, 0);
        EXPECT_EQ(round->sample.exchanges.has_value(), work == Work::answer);
        EXPECT_FALSE(round->parts_note.empty());
        EXPECT_EQ(round->sample.processes.migrations.value_or(0), 0U); // bound processes stay
        EXPECT_EQ(host::get_affinity(testbed->paths[0].threads[0])->count(), 1U);
        EXPECT_FALSE(round->cycles_source.empty());
    }
    const auto free = run_round(root(), *testbed, quick(), Model::none);
    ASSERT_TRUE(free) << free.error().reason;
    EXPECT_EQ(host::get_affinity(testbed->paths[0].threads[0]), quick().cpus);
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1); // no child is left
}

TEST(Round, StopsWhenItsDescriptorIsReadable) {
    const auto testbed = testbed_of(1);
    if (!testbed) return;
    auto setup = quick();
    const host::Fd stop(::eventfd(1, EFD_CLOEXEC));
    setup.stop = stop.get();
    setup.seconds = 60;
    const auto round = run_round(root(), *testbed, setup, Model::irq);
    ASSERT_FALSE(round);
    EXPECT_EQ(round.error().outcome, Outcome::killed);
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(Round, LinkThatGoesAwayIsAnOutcome) {
    const auto testbed = testbed_of(1);
    if (!testbed) return;
    Testbed broken = {{}, testbed->paths, {}};
    broken.paths[0].there_address = "198.18.200.1"; // no route
    auto setup = quick();
    setup.point.work = Work::transmit;
    for (int i = 0; i < 2; ++i)
        broken.spaces.push_back(NetworkSpace::make(root()).value()); // empty ones
    const auto round = run_round(root(), broken, setup, Model::none);
    ASSERT_FALSE(round);
    EXPECT_EQ(round.error().outcome, Outcome::link_lost) << round.error().reason;
    EXPECT_FALSE(round.error().reason.empty());
}

TEST(Round, ThreadsThatWentWithTheirInterfaceAreALostLink) {
    auto testbed = testbed_of(1);
    if (!testbed) return;
    const auto& path = testbed->paths[0];
    ASSERT_EQ(testbed->spaces[path.here].sys().text("class/net/" + path.nic + "/carrier"), "1");
    const int tid = std::exchange(testbed->paths[0].threads[0], 0x3fffffff); // of no thread
    const auto there = run_round(root(), *testbed, quick(), Model::full);
    ASSERT_FALSE(there);
    EXPECT_EQ(there.error().outcome, Outcome::failed) << there.error().reason;
    testbed->paths[0].threads[0] = tid;
    ASSERT_TRUE(testbed->spaces[path.here].within([&] { return set_up(path.nic, false); }));
    const auto gone = run_round(root(), *testbed, quick(), Model::full);
    ASSERT_FALSE(gone);
    EXPECT_EQ(gone.error().outcome, Outcome::link_lost) << gone.error().reason;
}

TEST(Experiment, InterleavedRoundsWithEverySampleKept) {
    const auto testbed = testbed_of(2);
    if (!testbed) return;
    ModelsSetup setup;
    setup.models = {Model::none, Model::none};
    setup.points = {{Work::transmit, 1024, 0}, {Work::answer, 1, 1}};
    setup.rounds = 4;
    setup.round = quick();
    std::size_t calls = 0;
    setup.progress = [&](std::size_t done, std::size_t all) {
        EXPECT_EQ(done, calls++); // 0 when the first begins
        EXPECT_EQ(all, 16U);
    };
    const auto report = run_models(root(), *testbed, setup);
    ASSERT_EQ(report.outcome, Outcome::done) << report.reason;
    ASSERT_EQ(report.points.size(), 2U);
    for (const auto& point : report.points) {
        ASSERT_EQ(point.models.size(), 2U);
        for (const auto& model : point.models)
            EXPECT_EQ(model.samples.size(), 4U);
        const auto summaries = summarize(point.models);
        EXPECT_TRUE(summaries[0][Figure::bits_per_second].interval);
        EXPECT_NE(summaries[1][Figure::bits_per_second].change.verdict, Verdict::not_enough);
        EXPECT_EQ(summaries[1][Figure::p50].interval.has_value(), point.point.work == Work::answer);
    }
    EXPECT_EQ(calls, rounds_of(setup) + 1);
}

TEST(GateTest, HoldsUntilOpened) {
    auto gate = Gate::make().value();
    const pid_t child = ::fork();
    if (child == 0) {
        gate.wait();
        ::_exit(7);
    }
    std::size_t arrived = 0;
    for (int i = 0; arrived == 0 && i < 500; ++i, ::usleep(10000))
        arrived += gate.count_arrivals();
    EXPECT_EQ(arrived, 1U);
    ::usleep(20000);
    EXPECT_EQ(::waitpid(child, nullptr, WNOHANG), 0);
    gate.open();
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), 7);
}

} // namespace
} // namespace affinityd::ttcp
