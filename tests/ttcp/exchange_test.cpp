// SPDX-License-Identifier: Apache-2.0
// Requests and responses over a TCP connection of this machine, the other end in a process of its own.
#include "affinity-ttcp/engine/socket.hpp"
#include "affinity-ttcp/engine/stream.hpp"
#include "affinity-ttcp/engine/worker.hpp"
#include "base/clock.hpp"

#include <array>
#include <cerrno>
#include <functional>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace affinityd::ttcp {
namespace {

using measure::Outcome;

/// A connection to a process that works on its other end.
struct Peer {
    Worker worker;
    host::Fd socket;
};

Peer peer_that(const std::function<StreamUse(int, Meter&)>& work) {
    const auto listener = listen_at({"127.0.0.1", "0"}, {}, 1).value();
    auto worker = Worker::start({}, [&](Meter& meter) -> Result<StreamUse> {
        const auto socket = accept_from(listener.get(), 10);
        if (!socket) return std::unexpected(socket.error());
        return work(socket->get(), meter);
    });
    auto socket = connect_to({"127.0.0.1", std::to_string(port_of(listener.get()))}, {.nodelay = true}, 10);
    return {std::move(worker.value()), std::move(socket.value())};
}

TEST(Exchange, BothEndsCountTheSame) {
    const std::pair<std::size_t, std::size_t> sizes[] = {{1, 1}, {128, 4096}, {300'000, 1}, {1, 300'000}};
    for (const auto& [request, response] : sizes) {
        const Exchange exchange{request, response, 0.2, 5};
        auto peer = peer_that([&](int socket, Meter& meter) { return answer(socket, exchange, meter); });
        Meter meter;
        LatencyCounts latencies;
        const auto asked = ask(peer.socket.get(), exchange, meter, latencies);
        const auto answered = peer.worker.collect(monotonic_seconds() + 10).value();
        EXPECT_EQ(asked.end, Outcome::done) << request;
        EXPECT_EQ(answered.end, Outcome::done) << request;
        EXPECT_GT(asked.calls, 0U);
        EXPECT_EQ(asked.calls, answered.calls);
        EXPECT_EQ(asked.bytes, asked.calls * (request + response));
        EXPECT_EQ(answered.bytes, asked.bytes);
        EXPECT_EQ(latencies.total(), asked.calls);
        // Requests come one at a time: all latencies together are the time that it took.
        const double mean = (asked.ended - asked.started) / static_cast<double>(asked.calls);
        EXPECT_LT(latencies.quantile(0.5).value() * 1e-9, 2.1 * mean);
        EXPECT_LE(latencies.quantile(0.5).value(), latencies.quantile(0.99).value());
    }
}

TEST(Exchange, PeerThatGoesInTheMiddleIsAnOutcome) {
    auto peer = peer_that([](int socket, Meter&) {
        std::array<char, 4> some{};
        EXPECT_GT(::recv(socket, some.data(), some.size(), 0), 0);
        EXPECT_EQ(::send(socket, "ab", 2, 0), 2);
        return StreamUse{}; // its process ends, and with it the connection
    });
    Meter meter;
    LatencyCounts latencies;
    const auto asked = ask(peer.socket.get(), {4, 8, 30, 5}, meter, latencies);
    EXPECT_EQ(asked.end, Outcome::peer_gone);
    EXPECT_EQ(asked.bytes, 0U);
    EXPECT_EQ(latencies.total(), 0U);
}

TEST(Exchange, RequestThatStopsInTheMiddleIsAnOutcome) {
    auto peer = peer_that([](int socket, Meter& meter) { return answer(socket, {8, 1, 1, 5}, meter); });
    ASSERT_EQ(::send(peer.socket.get(), "12345678abc", 11, 0), 11);
    ::shutdown(peer.socket.get(), SHUT_WR);
    const auto answered = peer.worker.collect(monotonic_seconds() + 10).value();
    EXPECT_EQ(answered.end, Outcome::peer_gone);
    EXPECT_EQ(answered.calls, 1U);
}

TEST(Exchange, SilentPeerIsGivenUp) {
    auto peer = peer_that([](int socket, Meter&) {
        std::array<char, 1> some{};
        static_cast<void>(::recv(socket, some.data(), 1, 0));
        static_cast<void>(::recv(socket, some.data(), 1, 0)); // until the test shuts the connection
        return StreamUse{};
    });
    Meter meter;
    LatencyCounts latencies;
    const double before = monotonic_seconds();
    const auto asked = ask(peer.socket.get(), {1, 1, 30, 0.3}, meter, latencies);
    EXPECT_EQ(asked.end, Outcome::timed_out);
    EXPECT_LT(monotonic_seconds() - before, 20);
}

TEST(Exchange, AnswerThatTakesTooLongIsAStallAlsoWithoutATimer) {
    auto peer = peer_that([](int socket, Meter&) {
        std::array<char, 1> some{};
        static_cast<void>(::recv(socket, some.data(), 1, 0));
        ::usleep(300'000);
        static_cast<void>(::send(socket, some.data(), 1, 0));
        static_cast<void>(::recv(socket, some.data(), 1, 0)); // until the test shuts the connection
        return StreamUse{};
    });
    Meter meter;
    LatencyCounts latencies;
    const auto asked = ask(peer.socket.get(), {1, 1, 30, 0.1, false, {}}, meter, latencies);
    EXPECT_EQ(asked.end, Outcome::timed_out);
    EXPECT_EQ(asked.code, ETIMEDOUT);
    EXPECT_EQ(asked.calls, 0U);
}

} // namespace
} // namespace affinityd::ttcp
