// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/session.hpp"
#include "affinity-ttcp/engine/socket.hpp"
#include "affinity-ttcp/engine/worker.hpp"
#include "base/clock.hpp"
#include "host/scheduler.hpp"
#include "own_root.hpp"

#include <cerrno>
#include <csignal>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::ttcp {
namespace {

using measure::Outcome;
using measure::Report;
using test::root;

Session small() {
    Session session;
    session.load.bytes = 1 << 20;
    session.load.buffer_bytes = 4096;
    session.load.stall_seconds = 2;
    session.connect_seconds = 5;
    return session;
}

TEST(Address, EveryFormIsParsedAndOthersAreRefused) {
    EXPECT_EQ(parse_address("host", "5001")->to_string(), "host:5001");
    EXPECT_EQ(parse_address("host:80", "5001")->to_string(), "host:80");
    EXPECT_EQ(parse_address("::1", "5001")->to_string(), "[::1]:5001");
    EXPECT_EQ(parse_address("[::1]", "5001")->to_string(), "[::1]:5001");
    EXPECT_EQ(parse_address("[fe80::1%eth0]:7", "5001")->to_string(), "[fe80::1%eth0]:7");
    for (const char* text : {"", ":80", "host:", "[::1", "[::1]80", "[]:5"})
        EXPECT_FALSE(parse_address(text, "5001")) << text;
    EXPECT_FALSE(parse_address(std::string(300, 'a'), "1"));
    EXPECT_FALSE(parse_address(std::string_view("a\0b", 3), "1"));
}

TEST(Loopback, EveryByteArrives) {
    Session session = small();
    session.streams = 3;
    session.load.bytes = 1'000'001; // no multiple of the buffer
    const auto report = run_loopback(root(), session);
    ASSERT_EQ(report.outcome, Outcome::done) << report.reason;
    EXPECT_EQ(report.setup.path, "loopback");
    EXPECT_FALSE(report.setup.touches_nic_interrupts);
    EXPECT_EQ(report.bytes, 3'000'003U);
    EXPECT_EQ(report.transmitter->bytes, 3'000'003U);
    EXPECT_EQ(report.receiver->bytes, 3'000'003U);
    EXPECT_EQ(report.transmitter->calls, 3U * 245U);
    EXPECT_GT(report.seconds, 0);
    EXPECT_NEAR(report.bits_per_second, 3'000'003 * 8 / report.seconds, 1);
    EXPECT_FALSE(report.cycles_source.empty());
}

TEST(Loopback, TimeEndsIt) {
    Session session = small();
    session.load.bytes = 0;
    session.load.seconds = 0.3;
    const double before = monotonic_seconds();
    const auto report = run_loopback(root(), session);
    EXPECT_EQ(report.outcome, Outcome::done) << report.reason;
    EXPECT_GT(report.seconds, 0.2);
    EXPECT_LT(monotonic_seconds() - before, 5);
    EXPECT_GT(report.transmitter->user_seconds + report.transmitter->system_seconds, 0.0);
    EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1); // no child is left
}

TEST(Loopback, EndsRunOnTheCpusTheyAreGiven) {
    const auto allowed = host::get_affinity(0).value();
    Session session = small();
    session.transmit_cpus = {allowed.first()};
    session.receive_cpus = {allowed.last()};
    const auto report = run_loopback(root(), session);
    EXPECT_EQ(report.outcome, Outcome::done) << report.reason;
    session.receive_cpus = {CpuSet::max_cpu};
    const auto refused = run_loopback(root(), session);
    EXPECT_EQ(refused.outcome, Outcome::failed);
    EXPECT_NE(refused.reason.find("cannot run on CPUs 1048575"), std::string::npos) << refused.reason;
}

TEST(Transmit, PortWithoutListenerIsUnreachable) {
    const auto listener = listen_at({"127.0.0.1", "0"}, {}, 1).value();
    const auto port = std::to_string(port_of(listener.get()));
    ::close(::dup(listener.get()));
    host::Fd closed;
    {
        auto other = listen_at({"127.0.0.1", "0"}, {}, 1).value();
        closed.reset(other.release());
    }
    const auto free_port = std::to_string(port_of(closed.get()));
    closed.reset();
    const auto report = run_transmit(root(), small(), {"127.0.0.1", free_port});
    EXPECT_EQ(report.outcome, Outcome::unreachable) << report.reason;
    EXPECT_EQ(report.bytes, 0U);
}

TEST(Transmit, PeerThatTakesNothingIsGivenUp) {
    const auto listener = listen_at({"127.0.0.1", "0"}, {}, 1).value();
    Session session = small();
    session.load.bytes = 1ULL << 33;
    session.load.stall_seconds = 0.3;
    const auto report = run_transmit(root(), session, {"127.0.0.1", std::to_string(port_of(listener.get()))});
    EXPECT_EQ(report.outcome, Outcome::timed_out) << report.reason;
}

TEST(Transmit, PeerThatResetsIsReported) {
    const auto listener = listen_at({"127.0.0.1", "0"}, {}, 1).value();
    const pid_t peer = ::fork();
    if (peer == 0) {
        const auto socket = accept_from(listener.get(), 5);
        char byte = 0;
        const linger reset{1, 0};
        if (socket && ::recv(socket->get(), &byte, 1, 0) == 1)
            ::setsockopt(socket->get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        if (socket) ::close(socket->get());
        ::_exit(0);
    }
    Session session = small();
    session.load.bytes = 1ULL << 33;
    const auto report = run_transmit(root(), session, {"127.0.0.1", std::to_string(port_of(listener.get()))});
    EXPECT_EQ(report.outcome, Outcome::peer_gone) << report.reason;
    EXPECT_FALSE(report.setup.touches_nic_interrupts); // 127.0.0.1 is no NIC
    ::waitpid(peer, nullptr, 0);
}

TEST(WorkerTest, KilledProcessIsReportedAsCancelled) {
    auto worker = Worker::start({}, [](Meter&) -> Result<StreamUse> {
        ::pause();
        return StreamUse{};
    });
    ASSERT_TRUE(worker);
    ::kill(worker->pid(), SIGKILL);
    const auto use = worker->collect(monotonic_seconds() + 5);
    ASSERT_FALSE(use);
    EXPECT_EQ(use.error().code, ECANCELED);
}

TEST(WorkerTest, OverdueProcessIsKilled) {
    auto worker = Worker::start({}, [](Meter&) -> Result<StreamUse> {
        ::pause();
        return StreamUse{};
    });
    ASSERT_TRUE(worker);
    const pid_t pid = worker->pid();
    const auto use = worker->collect(monotonic_seconds() + 0.1);
    ASSERT_FALSE(use);
    EXPECT_EQ(use.error().code, ETIMEDOUT);
    EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(WorkerTest, FaultArrivesWithItsText) {
    auto worker = Worker::start(
        {}, [](Meter&) -> Result<StreamUse> { return fail("no such thing", "subject", ENOENT); });
    ASSERT_TRUE(worker);
    const auto use = worker->collect(0);
    ASSERT_FALSE(use);
    EXPECT_EQ(use.error().message, "subject: no such thing");
    EXPECT_EQ(use.error().code, ENOENT);
}

TEST(WorkerTest, DiesWithItsParent) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t maker = ::fork();
    if (maker == 0) {
        auto worker = Worker::start({}, [](Meter&) -> Result<StreamUse> {
            ::pause();
            return StreamUse{};
        });
        const pid_t pid = worker->pid();
        if (::write(pipe[1], &pid, sizeof pid) != sizeof pid) ::_exit(1);
        ::kill(::getpid(), SIGKILL); // no destructor runs
    }
    pid_t pid = 0;
    ASSERT_EQ(::read(pipe[0], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
    ::waitpid(maker, nullptr, 0);
    for (int i = 0; i < 200 && ::kill(pid, 0) == 0; ++i)
        ::usleep(10000);
    EXPECT_EQ(::kill(pid, 0), -1);
    ::close(pipe[0]);
    ::close(pipe[1]);
}

TEST(Fill, SumsStreamsAndPricesBits) {
    StreamUse one;
    one.bytes = 1000;
    one.started = 10;
    one.ended = 12;
    one.usage.user_seconds = 0.25;
    one.usage.system_seconds = 0.75;
    one.usage.migrations = 2;
    one.retransmits = 1;
    StreamUse two = one;
    two.ended = 14;
    two.usage.migrations.reset();
    Report report;
    report.outcome = Outcome::done;
    fill(report, {{}, {one, two}}, 2e9);
    EXPECT_EQ(report.bytes, 2000U);
    EXPECT_DOUBLE_EQ(report.seconds, 4);
    EXPECT_DOUBLE_EQ(report.bits_per_second, 4000);
    EXPECT_DOUBLE_EQ(report.ghz_per_gbps.value(), 2 * 2e9 / 16000);
    EXPECT_FALSE(report.receiver->migrations); // one of the two has no count
    EXPECT_EQ(report.receiver->retransmits, 2U);
    EXPECT_FALSE(report.transmitter);
    Report counted;
    counted.outcome = Outcome::done;
    one.usage.cycles = 32000;
    fill(counted, {{one}, {one}}, 2e9);
    EXPECT_DOUBLE_EQ(counted.ghz_per_gbps.value(), 64000.0 / 8000);
    EXPECT_NE(counted.cycles_source.find("hardware"), std::string::npos);
    Report unknown;
    unknown.outcome = Outcome::done;
    fill(unknown, {{}, {two}}, std::nullopt);
    EXPECT_FALSE(unknown.ghz_per_gbps);
    Report empty;
    empty.outcome = Outcome::done;
    fill(empty, {{}, {StreamUse{}}}, 1e9);
    EXPECT_EQ(empty.outcome, Outcome::failed);
}

} // namespace
} // namespace affinityd::ttcp
