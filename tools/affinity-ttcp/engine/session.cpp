// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/session.hpp"

#include "affinity-ttcp/engine/activity.hpp"
#include "affinity-ttcp/engine/socket.hpp"
#include "affinity-ttcp/engine/worker.hpp"
#include "base/clock.hpp"
#include "host/root.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>

namespace affinityd::ttcp {

using measure::EndReport;
using measure::Outcome;
using measure::Report;

namespace {

std::optional<EndReport> sum_of(const std::vector<StreamUse>& uses) {
    if (uses.empty()) return std::nullopt;
    EndReport end;
    Usage usage = uses.front().usage;
    end.retransmits = 0;
    for (std::size_t i = 0; i < uses.size(); ++i) {
        if (i > 0) usage += uses[i].usage;
        end.bytes += uses[i].bytes;
        end.calls += uses[i].calls;
        add_known(end.retransmits, uses[i].retransmits);
    }
    end.user_seconds = usage.user_seconds;
    end.system_seconds = usage.system_seconds;
    end.voluntary_switches = usage.voluntary_switches;
    end.involuntary_switches = usage.involuntary_switches;
    end.migrations = usage.migrations;
    end.cycles = usage.cycles;
    end.instructions = usage.instructions;
    end.cache_misses = usage.cache_misses;
    return end;
}

void fill_cost(Report& report, std::optional<double> hz) {
    const double bits = static_cast<double>(report.bytes) * 8;
    if (bits <= 0) return;
    double cpu_seconds = 0;
    std::uint64_t cycles = 0;
    bool counted = true;
    for (const auto* end : {&report.transmitter, &report.receiver}) {
        if (!*end) continue;
        cpu_seconds += (*end)->user_seconds + (*end)->system_seconds;
        counted = counted && (*end)->cycles.has_value();
        cycles += (*end)->cycles.value_or(0);
    }
    if (counted) {
        report.ghz_per_gbps = static_cast<double>(cycles) / bits;
        report.cycles_source = "hardware counters of the stream processes";
    } else if (hz) {
        report.ghz_per_gbps = cpu_seconds * *hz / bits;
        report.cycles_source = fmt::format(
            "CPU time of the stream processes times {:.3f} GHz (no hardware counters)", *hz / 1e9);
    } else {
        report.cycles_source = no_cost;
    }
}

constexpr double grace_seconds = 5; ///< for start and report, on a machine that is busy

CpuSet nth(const std::vector<unsigned>& cpus, unsigned stream) {
    if (cpus.empty()) return {};
    return CpuSet{cpus[stream % cpus.size()]};
}

Report begun(const Session& session, std::string path, bool touches) {
    Report report;
    report.outcome = Outcome::done;
    report.setup = {std::move(path), touches, session.streams, session.load.buffer_bytes};
    return report;
}

/// CLOCK_MONOTONIC time by which the run must be over, whatever the peer does; 0: no bound.
double end_of(const Session& session) {
    if (session.load.seconds <= 0) return 0;
    return monotonic_seconds() + session.connect_seconds + session.load.seconds + session.load.stall_seconds +
           grace_seconds;
}

class Run {
  public:
    Run(const host::Root& root, const Session& session, Report report)
        : root_(root), session_(session), report_(std::move(report)), first_(read_activity(root)) {}

    void transmit(const Address& target) {
        for (unsigned i = 0; i < session_.streams; ++i)
            add(transmitters_, nth(session_.transmit_cpus, i), session_.load, ttcp::transmit,
                [&] { return connect_to(target, session_.socket, session_.connect_seconds); });
    }
    /// `seconds` 0: waits for connections without limit.
    void receive(int listener, double seconds, bool own_peer) {
        Load load = session_.load;
        if (own_peer)
            load.seconds = load.bytes = load.buffers = 0; // the transmitter closes when done; read it all
        for (unsigned i = 0; i < session_.streams; ++i)
            add(receivers_, nth(session_.receive_cpus, i), load, ttcp::receive,
                [&] { return accept_from(listener, seconds); });
    }
    void receive_over(int socket) {
        add(receivers_, nth(session_.receive_cpus, 0), session_.load, ttcp::receive,
            [&]() -> Result<host::Fd> { return host::Fd(socket); });
    }
    Report finish(double until) {
        Ends ends;
        collect(ends, until);
        const auto last = read_activity(root_);
        fill(report_, ends, read_frequency(root_));
        report_.cpus = cpus_between(first_, last);
        report_.lines = lines_between(first_, last);
        return std::move(report_);
    }

  private:
    /// A process that has `open` make its socket, and moves bytes over it.
    void add(std::vector<Worker>& workers, const CpuSet& cpus, Load load,
             StreamUse (*move)(int, const Load&, Meter&), const std::function<Result<host::Fd>()>& open) {
        if (report_.outcome != Outcome::done) return;
        load.has_link = has_link;
        auto worker = Worker::start(cpus, [&](Meter& meter) -> Result<StreamUse> {
            const auto socket = open();
            if (!socket) return std::unexpected(socket.error());
            const bool local = is_local(socket->get()); // the kernel cannot say once the peer has gone
            auto use = move(socket->get(), load, meter);
            use.is_local = local;
            return use;
        });
        if (worker)
            workers.push_back(std::move(*worker));
        else
            note(report_, Outcome::failed, worker.error().to_string());
    }
    /// In the order in which they end: the first fault gives the reason, those it causes come later.
    void collect(Ends& ends, double until) {
        std::vector<std::pair<Worker*, std::vector<StreamUse>*>> running;
        for (auto& worker : transmitters_)
            running.emplace_back(&worker, &ends.transmitted);
        for (auto& worker : receivers_)
            running.emplace_back(&worker, &ends.received);
        while (!running.empty()) {
            std::vector<int> results;
            for (const auto& [worker, uses] : running)
                results.push_back(worker->result_fd());
            const auto at = static_cast<std::ptrdiff_t>(
                wait_for_any(results, until).value_or(0)); // none in time: collect() kills this one
            take(*running[static_cast<std::size_t>(at)].first, *running[static_cast<std::size_t>(at)].second,
                 until);
            running.erase(running.begin() + at);
            // After a fault the others have no peer.
            const double soon = monotonic_seconds() + 0.5;
            if (report_.outcome != Outcome::done && (until == 0 || until > soon)) until = soon;
        }
    }
    void take(Worker& worker, std::vector<StreamUse>& uses, double until) {
        const auto use = worker.collect(until);
        if (!use) return note(report_, outcome_of(use.error().code), use.error().to_string());
        if (use->end != Outcome::done) note(report_, use->end, broken_stream(*use));
        uses.push_back(*use);
    }

    const host::Root& root_;
    const Session& session_;
    Report report_;
    Activity first_;
    std::vector<Worker> transmitters_, receivers_;
};

} // namespace

void fill(Report& report, const Ends& ends, std::optional<double> hz) {
    report.transmitter = sum_of(ends.transmitted);
    report.receiver = sum_of(ends.received);
    const auto& arrived = ends.received.empty() ? ends.transmitted : ends.received;
    double first = std::numeric_limits<double>::infinity(), last = 0;
    for (const auto& use : arrived) {
        report.bytes += use.bytes;
        if (use.is_local) report.setup.touches_nic_interrupts = false;
        if (use.bytes == 0) continue;
        first = std::min(first, use.started);
        last = std::max(last, use.ended);
    }
    report.seconds = last > first ? last - first : 0;
    if (report.seconds > 0) report.bits_per_second = static_cast<double>(report.bytes) * 8 / report.seconds;
    if (report.bytes == 0) note(report, Outcome::failed, "no bytes were moved");
    fill_cost(report, hz);
}

Outcome outcome_of(int code) {
    switch (code) {
    case ETIMEDOUT:
    case EAGAIN:
        return Outcome::timed_out;
    case ECANCELED:
        return Outcome::killed;
    case ECONNREFUSED:
    case EADDRNOTAVAIL:
    case EHOSTUNREACH:
        return Outcome::unreachable;
    case ENETUNREACH:
    case ENETDOWN:
        return Outcome::link_lost;
    default:
        return Outcome::failed;
    }
}

std::string broken_stream(const StreamUse& use) {
    return fmt::format("a stream ended after {} bytes: {}", use.bytes, std::strerror(use.code));
}

void note(measure::Report& report, Outcome outcome, const std::string& reason) {
    if (report.outcome != Outcome::done) return;
    report.outcome = outcome;
    report.reason = reason;
}

Report run_loopback(const host::Root& root, const Session& session) {
    Report report = begun(session, "loopback", false);
    Address here{"127.0.0.1", "0"};
    auto listener = listen_at(here, session.socket, session.streams);
    if (!listener) { // a machine without IPv4
        here.host = "::1";
        listener = listen_at(here, session.socket, session.streams);
    }
    if (!listener) {
        note(report, Outcome::unreachable, listener.error().to_string());
        return report;
    }
    const double until = end_of(session);
    here.port = std::to_string(port_of(listener->get()));
    Run run(root, session, std::move(report));
    run.receive(listener->get(), session.connect_seconds, true);
    run.transmit(here);
    return run.finish(until);
}

Report run_transmit(const host::Root& root, const Session& session, const Address& target) {
    const double until = end_of(session);
    Run run(root, session, begun(session, target.to_string(), true));
    run.transmit(target);
    return run.finish(until);
}

Report run_receive(const host::Root& root, const Session& session, int listener) {
    Run run(root, session, begun(session, fmt::format("port {}", port_of(listener)), true));
    run.receive(listener, 0, false);
    return run.finish(0);
}

Report run_connected(const host::Root& root, const Session& session, int socket) {
    ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) & ~O_NONBLOCK);
    Session one = session;
    one.streams = 1;
    Run run(root, one, begun(one, peer_of(socket), true));
    run.receive_over(socket);
    return run.finish(0);
}

} // namespace affinityd::ttcp
