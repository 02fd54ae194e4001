// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/streams.hpp"

#include "affinity-ttcp/engine/endpoint.hpp"
#include "affinity-ttcp/engine/outcome.hpp"
#include "base/clock.hpp"

#include <cerrno>

namespace affinityd::ttcp {

using measure::Outcome;

namespace {

std::unexpected<RoundFault> stopped() {
    return std::unexpected(RoundFault{Outcome::killed, "stopped by a signal"});
}

std::expected<StreamUse, RoundFault> take(Worker& worker, double until) {
    const auto use = worker.collect(until);
    if (!use) return std::unexpected(to_fault(use.error()));
    if (use->end != End::whole) return std::unexpected(RoundFault{outcome_of(use->end), broken_stream(*use)});
    return *use;
}

/// Runs `open` in `space` and keeps the socket that it made.
Result<host::Fd> socket_in(const NetworkSpace& space, const std::function<Result<host::Fd>()>& open) {
    host::Fd socket;
    const auto done = space.within([&]() -> Result<void> {
        auto made = open();
        if (!made) return std::unexpected(made.error());
        socket = std::move(*made);
        return {};
    });
    if (!done) return std::unexpected(done.error());
    return socket;
}

} // namespace

Result<void> Streams::start(Gate& gate) {
    for (std::size_t i = 0; i < testbed_.paths.size(); ++i)
        if (auto done = start_path(i, gate); !done) return done;
    return {};
}

/// The peers' processes are never bound.
CpuSet Streams::cpus_of(std::size_t path, bool under_test) const {
    if (!under_test || !binds_processes(model_)) return setup_.cpus;
    return {cpu_of(static_cast<unsigned>(path), static_cast<unsigned>(testbed_.paths.size()), setup_.cpus)};
}

SocketOptions Streams::socket_options() const {
    SocketOptions options;
    options.buffer_bytes = setup_.socket_buffer;
    options.nodelay = setup_.point.work == Work::answer; // a response must not wait for an acknowledgement
    return options;
}

Exchange Streams::exchange(std::function<void()> wait) const {
    return {setup_.point.bytes, setup_.point.response_bytes, setup_.seconds, setup_.stall_seconds, false,
            std::move(wait)};
}

Load Streams::load(std::function<void()> wait) const {
    Load load;
    load.buffer_bytes = setup_.point.bytes;
    load.stall_seconds = setup_.stall_seconds;
    load.wait = std::move(wait);
    return load;
}

Result<Worker> Streams::start_receiver(std::size_t path, Gate& gate, const host::Fd& listener) {
    return Worker::start(cpus_of(path, is_receiver_under_test()), [&](Meter& meter) -> Result<StreamUse> {
        const auto socket = accept_from(listener.get(), connect_seconds);
        if (!socket) return std::unexpected(socket.error());
        const auto arrive = [&gate] { gate.arrive(); };
        if (setup_.point.work == Work::answer) return answer(socket->get(), exchange(arrive), meter);
        return receive(socket->get(), load(arrive), meter);
    });
}

Result<Worker> Streams::start_transmitter(std::size_t path, Gate& gate, const Address& target) {
    const auto& way = testbed_.paths[path];
    const auto& source = testbed_.spaces[is_receiver_under_test() ? way.there : way.here];
    LatencyCounts* latencies = nullptr;
    if (setup_.point.work == Work::answer) {
        latencies = latencies_.emplace_back().get();
        if (latencies == nullptr) return fail("no memory for latencies", {}, ENOMEM);
    }
    return Worker::start(cpus_of(path, !is_receiver_under_test()), [&](Meter& meter) -> Result<StreamUse> {
        const auto socket =
            socket_in(source, [&] { return connect_to(target, socket_options(), connect_seconds); });
        if (!socket) return std::unexpected(socket.error());
        const auto wait = [&gate] { gate.wait(); };
        if (latencies != nullptr) return ask(socket->get(), exchange(wait), meter, *latencies);
        auto bounded = load(wait);
        bounded.seconds = setup_.seconds;
        return transmit(socket->get(), bounded, meter);
    });
}

Result<void> Streams::start_path(std::size_t number, Gate& gate) {
    const auto& path = testbed_.paths[number];
    const auto& sink = testbed_.spaces[is_receiver_under_test() ? path.here : path.there];
    Address target{is_receiver_under_test() ? path.here_address : path.there_address, "0"};
    const auto listener = socket_in(sink, [&] { return listen_at(target, socket_options(), 1); });
    if (!listener) return std::unexpected(listener.error());
    target.port = std::to_string(port_of(listener->get()));
    auto receiver = start_receiver(number, gate, *listener);
    if (!receiver) return std::unexpected(receiver.error());
    auto transmitter = start_transmitter(number, gate, target);
    if (!transmitter) return std::unexpected(transmitter.error());
    receivers_.push_back(std::move(*receiver));
    transmitters_.push_back(std::move(*transmitter));
    return {};
}

LatencyCounts Streams::latencies() const {
    LatencyCounts sum;
    for (const auto& each : latencies_)
        sum += *each.get();
    return sum;
}

Worker& Streams::worker(std::size_t number) {
    return number < transmitters_.size() ? transmitters_[number] : receivers_[number - transmitters_.size()];
}

std::expected<void, RoundFault> Streams::wait_until_connected(Gate& gate, double until) {
    std::size_t arrived = 0;
    while (arrived < transmitters_.size() + receivers_.size()) {
        std::vector<int> files{setup_.stop, gate.arrivals()};
        for (const auto* workers : {&transmitters_, &receivers_})
            for (const auto& each : *workers)
                files.push_back(each.result_fd()); // a result before the start can only be a fault
        const auto ready = wait_for_any(files, until);
        if (!ready)
            return std::unexpected(RoundFault{Outcome::timed_out, "the connections were not made in time"});
        if (*ready == 0) return stopped();
        if (*ready == 1) {
            arrived += gate.count_arrivals();
            continue;
        }
        const auto taken = take(worker(*ready - 2), until);
        return std::unexpected(taken ? RoundFault{Outcome::failed, "a stream ended before it began"}
                                     : taken.error());
    }
    return {};
}

/// Why the peer of a stream has gone: what the others that still run say within a second, if that is more.
/// One that was killed closes its connection before it is known to have ended.
RoundFault Streams::cause_of(RoundFault fault, std::vector<Worker*> others) {
    constexpr double patience_seconds = 1;
    const double until = monotonic_seconds() + patience_seconds;
    while (fault.outcome == Outcome::peer_gone && !others.empty()) {
        std::vector<int> files;
        for (const auto* each : others)
            files.push_back(each->result_fd());
        const auto ready = wait_for_any(files, until);
        if (!ready) break;
        const auto at = others.begin() + static_cast<std::ptrdiff_t>(*ready);
        if (const auto use = take(**at, until); !use) fault = use.error();
        others.erase(at);
    }
    return fault;
}

std::expected<Ends, RoundFault> Streams::collect(double until) {
    Ends ends;
    std::vector<std::pair<Worker*, std::vector<StreamUse>*>> running;
    for (auto& each : transmitters_)
        running.emplace_back(&each, &ends.transmitted);
    for (auto& each : receivers_)
        running.emplace_back(&each, &ends.received);
    while (!running.empty()) {
        std::vector<int> files{setup_.stop};
        for (const auto& [each, uses] : running)
            files.push_back(each->result_fd());
        const auto ready = wait_for_any(files, until);
        if (ready == 0U) return stopped();
        const auto at = running.begin() + static_cast<std::ptrdiff_t>(ready.value_or(1)) -
                        1; // none in time: take() kills this one
        const auto use = take(*at->first, until);
        if (use) at->second->push_back(*use);
        running.erase(at);
        if (use) continue;
        std::vector<Worker*> others;
        for (const auto& [each, uses] : running)
            others.push_back(each);
        return std::unexpected(cause_of(use.error(), std::move(others)));
    }
    return ends;
}

} // namespace affinityd::ttcp
