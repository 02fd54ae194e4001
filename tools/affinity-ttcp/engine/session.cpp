// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/session.hpp"

#include "affinity-ttcp/engine/activity.hpp"
#include "affinity-ttcp/engine/endpoint.hpp"
#include "affinity-ttcp/engine/figures.hpp"
#include "affinity-ttcp/engine/frequency.hpp"
#include "affinity-ttcp/engine/outcome.hpp"
#include "affinity-ttcp/engine/worker.hpp"
#include "base/clock.hpp"
#include "host/root.hpp"

#include <utility>

#include <fcntl.h>
#include <fmt/format.h>

namespace affinityd::ttcp {

using measure::Outcome;
using measure::Report;

namespace {

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
        Load load = session_.load;
        load.has_link = has_link;
        for (unsigned i = 0; i < session_.streams; ++i)
            add(transmitters_, nth(session_.transmit_cpus, i), [&](Meter& meter) -> Result<StreamUse> {
                const auto socket = connect_to(target, session_.socket, session_.connect_seconds);
                if (!socket) return std::unexpected(socket.error());
                const bool local = is_local(socket->get()); // the kernel cannot say once the peer has gone
                auto use = ttcp::transmit(socket->get(), load, meter);
                use.is_local = local;
                return use;
            });
    }
    /// `seconds` 0: waits for connections without limit.
    void receive(int listener, double seconds, bool own_peer) {
        Load load = session_.load;
        load.has_link = has_link;
        if (own_peer)
            load.seconds = load.bytes = load.buffers = 0; // the transmitter closes when done; read it all
        for (unsigned i = 0; i < session_.streams; ++i)
            add(receivers_, nth(session_.receive_cpus, i), [&](Meter& meter) -> Result<StreamUse> {
                const auto socket = accept_from(listener, seconds);
                if (!socket) return std::unexpected(socket.error());
                const bool local = is_local(socket->get()); // the kernel cannot say once the peer has gone
                auto use = ttcp::receive(socket->get(), load, meter);
                use.is_local = local;
                return use;
            });
    }
    void receive_over(int socket) {
        Load load = session_.load;
        load.has_link = has_link;
        add(receivers_, nth(session_.receive_cpus, 0), [&](Meter& meter) -> Result<StreamUse> {
            const bool local = is_local(socket);
            auto use = ttcp::receive(socket, load, meter);
            use.is_local = local;
            return use;
        });
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
    void add(std::vector<Worker>& workers, const CpuSet& cpus,
             const std::function<Result<StreamUse>(Meter&)>& body) {
        if (report_.outcome != Outcome::done) return;
        auto worker = Worker::start(cpus, body);
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
        if (use->end != End::whole) note(report_, outcome_of(use->end), broken_stream(*use));
        uses.push_back(*use);
    }

    const host::Root& root_;
    const Session& session_;
    Report report_;
    Activity first_;
    std::vector<Worker> transmitters_, receivers_;
};

} // namespace

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
