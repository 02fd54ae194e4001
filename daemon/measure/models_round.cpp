// SPDX-License-Identifier: Apache-2.0
#include "measure/models_round.hpp"

#include "base/text.hpp"
#include "host/root.hpp"
#include "host/scheduler.hpp"
#include "measure/activity.hpp"
#include "measure/gate.hpp"
#include "measure/session.hpp"
#include "measure/worker.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <unistd.h>

namespace affinityd::measure {

namespace {

constexpr double connect_seconds = 10;
constexpr double stall_seconds = 10;
constexpr double grace_seconds = 5;

std::unexpected<RoundFault> fault(const Error& error) {
    return std::unexpected(RoundFault{outcome_of(error.code), error.to_string()});
}
std::unexpected<RoundFault> stopped() {
    return std::unexpected(RoundFault{Outcome::killed, "stopped by a signal"});
}

/// CPU time of the threads that take the interrupts of the paths, and their cycles.
class ThreadUse {
  public:
    ThreadUse(const host::Root& root, const Bed& bed) : root_(root) {
        for (const auto& path : bed.paths)
            for (const int tid : path.threads) {
                tids_.push_back(tid);
                counters_.emplace_back(tid);
            }
    }
    [[nodiscard]] double seconds() const {
        double sum = 0;
        for (const int tid : tids_)
            sum += seconds_of(tid);
        return sum;
    }
    [[nodiscard]] std::optional<std::uint64_t> cycles() const {
        std::uint64_t sum = 0;
        for (const auto& counter : counters_) {
            const auto count = counter.read();
            if (!count) return std::nullopt;
            sum += *count;
        }
        return sum;
    }

  private:
    /// In nanoseconds by schedstat, else (no CONFIG_SCHED_INFO) in ticks by stat; 0 for one that has gone.
    [[nodiscard]] double seconds_of(int tid) const {
        const auto schedstat = root_.proc().text(fmt::format("{}/schedstat", tid));
        if (schedstat && !schedstat->empty())
            if (const auto spent = parse_number<std::uint64_t>(split_words(*schedstat).front()))
                return static_cast<double>(*spent) * 1e-9;
        const auto stat = root_.proc().text(fmt::format("{}/stat", tid)).value_or("");
        const auto words =
            split_words(std::string_view(stat).substr(std::min(stat.rfind(')') + 1, stat.size())));
        if (words.size() < 13) return 0; // utime and stime are fields 14 and 15, proc_pid_stat(5)
        const auto ticks = parse_number<std::uint64_t>(words[11]).value_or(0) +
                           parse_number<std::uint64_t>(words[12]).value_or(0);
        return static_cast<double>(ticks) / static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
    }
    const host::Root& root_;
    std::vector<int> tids_;
    std::vector<CycleCounter> counters_;
};

class Runner {
  public:
    Runner(const host::Root& root, const Bed& bed, const RoundSetup& setup, Model model)
        : root_(root), bed_(bed), setup_(setup), model_(model) {}

    std::expected<Round, RoundFault> run() {
        for (std::size_t i = 0; i < bed_.paths.size(); ++i)
            if (auto done = place_interrupts(root_, bed_.paths[i], cpus_of(i, binds_interrupts(model_)));
                !done)
                return fault(done.error());
        auto gate = Gate::make();
        if (!gate) return fault(gate.error());
        for (std::size_t i = 0; i < bed_.paths.size(); ++i)
            if (auto done = start_path(i, *gate); !done) return fault(done.error());
        const double until =
            monotonic_seconds() + connect_seconds + setup_.seconds + stall_seconds + grace_seconds;
        if (auto done = wait_until_connected(*gate, until); !done) return std::unexpected(done.error());

        const ThreadUse threads(root_, bed_);
        const auto first = read_activity(root_);
        const double spent = threads.seconds();
        const auto counted = threads.cycles();
        gate->open();
        if (auto done = collect(until); !done) return std::unexpected(explained(done.error()));
        threads_seconds_ = threads.seconds() - spent;
        if (const auto now = threads.cycles(); now && counted) threads_cycles_ = *now - *counted;
        return result(first, read_activity(root_));
    }

  private:
    /// TCP goes on trying when an interface has gone: to the streams that is a stall.
    [[nodiscard]] RoundFault explained(RoundFault fault) const {
        if (fault.outcome != Outcome::timed_out && fault.outcome != Outcome::peer_gone) return fault;
        for (const auto& path : bed_.paths)
            if (bed_.spaces[path.here].sys().text("class/net/" + path.nic + "/carrier") != "1")
                return {Outcome::link_lost, path.nic + " has gone or lost its link: " + fault.reason};
        return fault;
    }
    [[nodiscard]] CpuSet cpus_of(std::size_t path, bool bound) const {
        if (!bound) return setup_.cpus;
        return {cpu_of(static_cast<unsigned>(path), static_cast<unsigned>(bed_.paths.size()), setup_.cpus)};
    }

    Result<void> start_path(std::size_t number, Gate& gate) {
        const auto& path = bed_.paths[number];
        const auto& source = bed_.spaces[setup_.receives ? path.there : path.here];
        const auto& sink = bed_.spaces[setup_.receives ? path.here : path.there];
        Address target{setup_.receives ? path.here_address : path.there_address, "0"};
        SocketOptions sockets;
        sockets.buffer_bytes = setup_.socket_buffer;
        host::Fd listener;
        const auto listened = sink.within([&]() -> Result<void> {
            auto made = listen_at(target, sockets, 1);
            if (!made) return std::unexpected(made.error());
            listener = std::move(*made);
            return {};
        });
        if (!listened) return listened;
        target.port = std::to_string(port_of(listener.get()));
        Load load;
        load.buffer_bytes = setup_.buffer_bytes;
        load.stall_seconds = stall_seconds;
        auto receiver = Worker::start(cpus_of(number, setup_.receives && binds_processes(model_)),
                                      [&](Meter& meter) -> Result<StreamUse> {
                                          gate.pass_by();
                                          const auto socket = accept_from(listener.get(), connect_seconds);
                                          if (!socket) return std::unexpected(socket.error());
                                          return receive(socket->get(), load, meter);
                                      });
        if (!receiver) return std::unexpected(receiver.error());
        load.seconds = setup_.seconds;
        auto transmitter = Worker::start(cpus_of(number, !setup_.receives && binds_processes(model_)),
                                         [&](Meter& meter) -> Result<StreamUse> {
                                             host::Fd socket;
                                             const auto connected = source.within([&]() -> Result<void> {
                                                 auto made = connect_to(target, sockets, connect_seconds);
                                                 if (!made) return std::unexpected(made.error());
                                                 socket = std::move(*made);
                                                 return {};
                                             });
                                             if (!connected) return std::unexpected(connected.error());
                                             gate.wait();
                                             return transmit(socket.get(), load, meter);
                                         });
        if (!transmitter) return std::unexpected(transmitter.error());
        receivers_.push_back(std::move(*receiver));
        transmitters_.push_back(std::move(*transmitter));
        return {};
    }

    std::expected<void, RoundFault> wait_until_connected(Gate& gate, double until) {
        std::size_t arrived = 0;
        while (arrived < transmitters_.size()) {
            std::vector<int> files{setup_.stop, gate.arrivals()};
            for (const auto* workers : {&transmitters_, &receivers_})
                for (const auto& worker : *workers)
                    files.push_back(worker.result_fd()); // before the start there is none but a fault
            const auto ready = wait_for_any(files, until);
            if (ready == 0U) return stopped();
            if (ready == 1U)
                arrived += gate.count_arrivals();
            else if (!ready)
                return std::unexpected(
                    RoundFault{Outcome::timed_out, "the connections were not made in time"});
            else if (auto taken = take(*ready - 2 < transmitters_.size()
                                           ? transmitters_[*ready - 2]
                                           : receivers_[*ready - 2 - transmitters_.size()],
                                       until))
                return std::unexpected(RoundFault{Outcome::failed, "a stream ended before it began"});
            else
                return std::unexpected(taken.error());
        }
        return {};
    }

    static std::expected<StreamUse, RoundFault> take(Worker& worker, double until) {
        const auto use = worker.collect(until);
        if (!use) return fault(use.error());
        if (use->end != End::whole)
            return std::unexpected(
                RoundFault{outcome_of(use->end), fmt::format("a stream ended after {} bytes: {}", use->bytes,
                                                             std::strerror(use->code))});
        return *use;
    }

    /// As they end: the fault that came first tells the reason.
    std::expected<void, RoundFault> collect(double until) {
        std::vector<std::pair<Worker*, std::vector<StreamUse>*>> running;
        for (auto& worker : transmitters_)
            running.emplace_back(&worker, &ends_.transmitted);
        for (auto& worker : receivers_)
            running.emplace_back(&worker, &ends_.received);
        while (!running.empty()) {
            std::vector<int> files{setup_.stop};
            for (const auto& [worker, uses] : running)
                files.push_back(worker->result_fd());
            const auto ready = wait_for_any(files, until);
            if (ready == 0U) return stopped();
            const auto at = running.begin() + static_cast<std::ptrdiff_t>(ready.value_or(1)) -
                            1; // none in time: collect kills it
            const auto use = take(*at->first, until);
            if (!use) return std::unexpected(use.error());
            at->second->push_back(*use);
            running.erase(at);
        }
        return {};
    }

    [[nodiscard]] std::expected<Round, RoundFault> result(const Activity& first, const Activity& last) const {
        Report both, tested;
        both.outcome = tested.outcome = Outcome::done;
        fill(both, ends_, std::nullopt);
        if (both.outcome != Outcome::done) return std::unexpected(RoundFault{both.outcome, both.reason});
        const EndReport& end = setup_.receives ? *both.receiver : *both.transmitter;
        Round round;
        auto& sample = round.sample;
        sample.bits_per_second = both.bits_per_second;
        sample.bytes = both.bytes;
        sample.wall_seconds = both.seconds;
        sample.instructions = end.instructions;
        sample.cache_misses = end.cache_misses;
        sample.switches = end.voluntary_switches + end.involuntary_switches;
        sample.migrations = end.migrations;
        sample.retransmits = both.transmitter->retransmits;
        sample.cpus = cpus_between(first, last);
        for (auto& line : lines_between(first, last))
            if (is_ours(line.irq)) sample.lines.push_back(std::move(line));
        sample.cpu_seconds = end.user_seconds + end.system_seconds + interrupt_seconds(sample.cpus);
        price(round, end);
        return round;
    }

    [[nodiscard]] bool is_ours(unsigned irq) const {
        return std::ranges::any_of(bed_.paths, [&](const Path& path) {
            return std::ranges::find(path.irqs, irq) != path.irqs.end();
        });
    }
    [[nodiscard]] bool has_threads() const {
        return std::ranges::all_of(bed_.paths, [](const Path& path) { return !path.threads.empty(); });
    }
    [[nodiscard]] double interrupt_seconds(const std::vector<CpuReport>& cpus) const {
        if (has_threads()) return threads_seconds_;
        double sum = 0;
        for (const auto& cpu : cpus)
            sum += cpu.irq_seconds + cpu.softirq_seconds;
        return sum;
    }

    void price(Round& round, const EndReport& end) const {
        const double bits = 8 * static_cast<double>(round.sample.bytes);
        const char* of = has_threads() ? "the processes and NAPI threads under test"
                                       : "the processes under test and all interrupt work of the machine";
        if (end.cycles && threads_cycles_ && has_threads()) {
            round.sample.cycles_per_bit = static_cast<double>(*end.cycles + *threads_cycles_) / bits;
            round.cycles_source = fmt::format("hardware counters of {}", of);
        } else if (const auto hz = read_frequency(root_)) {
            round.sample.cycles_per_bit = round.sample.cpu_seconds * *hz / bits;
            round.cycles_source = fmt::format("CPU time of {} times {:.3f} GHz", of, *hz / 1e9);
        } else {
            round.cycles_source = "not known: no hardware counters, and the CPU frequency is not told";
        }
    }

    const host::Root& root_;
    const Bed& bed_;
    const RoundSetup& setup_;
    Model model_;
    std::vector<Worker> transmitters_, receivers_;
    Ends ends_;
    double threads_seconds_ = 0;
    std::optional<std::uint64_t> threads_cycles_;
};

} // namespace

std::expected<Round, RoundFault> run_round(const host::Root& root, const Bed& bed, const RoundSetup& setup,
                                           Model model) {
    return Runner(root, bed, setup, model).run();
}

} // namespace affinityd::measure
