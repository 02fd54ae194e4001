// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/round.hpp"

#include "affinity-ttcp/engine/activity.hpp"
#include "affinity-ttcp/engine/session.hpp"
#include "affinity-ttcp/engine/socket.hpp"
#include "affinity-ttcp/engine/stream.hpp"
#include "affinity-ttcp/engine/usage.hpp"
#include "affinity-ttcp/engine/worker.hpp"
#include "affinity-ttcp/testbed/testbed.hpp"
#include "base/clock.hpp"
#include "base/text.hpp"
#include "host/root.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <expected>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace affinityd::ttcp {

using measure::EndReport;
using measure::Outcome;

namespace {

bool takes_interrupt(const Testbed& testbed, unsigned irq) {
    return std::ranges::any_of(testbed.paths, [&](const Path& path) {
        return std::ranges::find(path.irqs, irq) != path.irqs.end();
    });
}

ExchangeSample exchanges_of(const LatencyCounts& latencies) {
    return {latencies.total(), latencies.quantile(0.5).value_or(0) * 1e-9,
            latencies.quantile(0.99).value_or(0) * 1e-9};
}

bool has_threads(const Testbed& testbed) {
    return std::ranges::all_of(testbed.paths, [](const Path& path) { return !path.threads.empty(); });
}

const char* note_of(bool threads, bool told) {
    if (threads && told)
        return "softirq is the NAPI threads under test; the time in interrupts is in neither";
    if (threads)
        return "softirq is the NAPI threads under test; this kernel does not measure the time in interrupts "
               "(no "
               "IRQ time accounting), which is in the part that they interrupted, as are softirqs that run "
               "on "
               "return from one";
    if (told) return "softirq and interrupts are those of the whole machine";
    return "softirq is that of the whole machine, as the timer tick sampled it; this kernel does not measure "
           "the "
           "time in softirqs and interrupts (no IRQ time accounting): what came while a process under test "
           "ran "
           "counts with that, too, so that the sum is too high rather than too low";
}

CostParts seconds_of(const EndReport& end, const RoundCosts& costs, bool threads, bool told) {
    CostParts parts{end.user_seconds + end.system_seconds, costs.threads_seconds, std::nullopt};
    if (threads) return parts;
    parts.softirq = 0;
    double interrupts = 0;
    for (const auto& cpu : cpus_between(costs.first, costs.last)) {
        parts.softirq += cpu.softirq_seconds;
        interrupts += cpu.irq_seconds;
    }
    if (told) parts.interrupts = interrupts;
    return parts;
}

constexpr double connect_seconds = 10; ///< for each connection

/// A connection over each path of a testbed, each end a process of its own. They connect, wait at the gate
/// and begin together. With Work::answer the transmitters ask and the receivers answer. Processes that still
/// run end with this object.
class Streams {
  public:
    Streams(const Testbed& testbed, const RoundSetup& setup, Model model)
        : testbed_(testbed), setup_(setup), model_(model) {}

    [[nodiscard]] Result<void> start(Gate& gate);
    [[nodiscard]] std::expected<void, RoundFault> wait_until_connected(Gate& gate, double until);
    /// After the gate was opened. In the order in which they end, so that the first fault gives the reason.
    [[nodiscard]] std::expected<Ends, RoundFault> collect(double until);
    /// All connections together, once collected; empty but with Work::answer.
    [[nodiscard]] LatencyCounts latencies() const;

  private:
    [[nodiscard]] Result<void> start_path(std::size_t number, Gate& gate);
    [[nodiscard]] Result<Worker> start_receiver(std::size_t path, Gate& gate, const host::Fd& listener);
    [[nodiscard]] Result<Worker> start_transmitter(std::size_t path, Gate& gate, const Address& target);
    [[nodiscard]] CpuSet cpus_of(std::size_t path, bool under_test) const;
    [[nodiscard]] bool is_receiver_under_test() const { return setup_.point.work != Work::transmit; }
    [[nodiscard]] SocketOptions socket_options() const;
    /// `wait`: as that of a Load.
    [[nodiscard]] Exchange exchange(std::function<void()> wait) const;
    [[nodiscard]] Load load(std::function<void()> wait) const;
    [[nodiscard]] static RoundFault cause_of(RoundFault fault, std::vector<Worker*> others);
    [[nodiscard]] Worker& worker(std::size_t number);

    const Testbed& testbed_;
    const RoundSetup& setup_;
    Model model_;
    std::vector<Worker> transmitters_, receivers_;
    std::vector<Shared<LatencyCounts>> latencies_; ///< of the transmitters, with Work::answer
};

std::unexpected<RoundFault> stopped() {
    return std::unexpected(RoundFault{Outcome::killed, "stopped by a signal"});
}

std::expected<StreamUse, RoundFault> take(Worker& worker, double until) {
    const auto use = worker.collect(until);
    if (!use) return std::unexpected(to_fault(use.error()));
    if (use->end != Outcome::done) return std::unexpected(RoundFault{use->end, broken_stream(*use)});
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
/// A killed process's connection closes before its end is known.
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

/// CPU time and cycles of the NAPI threads of a testbed's paths.
class ThreadUse {
  public:
    ThreadUse(const host::Root& root, const Testbed& testbed);
    /// Since the threads began; a thread that has ended counts as 0.
    [[nodiscard]] double seconds() const;
    /// Since this object was made; no value without hardware counters.
    [[nodiscard]] std::optional<std::uint64_t> cycles() const;

  private:
    [[nodiscard]] double seconds_of(int tid) const;
    const host::Root& root_;
    std::vector<int> tids_;
    std::vector<CycleCounter> counters_;
};

ThreadUse::ThreadUse(const host::Root& root, const Testbed& testbed) : root_(root) {
    for (const auto& path : testbed.paths)
        for (const int tid : path.threads) {
            tids_.push_back(tid);
            counters_.emplace_back(tid);
        }
}

double ThreadUse::seconds() const {
    double sum = 0;
    for (const int tid : tids_)
        sum += seconds_of(tid);
    return sum;
}

std::optional<std::uint64_t> ThreadUse::cycles() const {
    std::uint64_t sum = 0;
    for (const auto& counter : counters_) {
        const auto count = counter.read();
        if (!count) return std::nullopt;
        sum += *count;
    }
    return sum;
}

/// schedstat counts nanoseconds; where the kernel has none (no CONFIG_SCHED_INFO), stat counts ticks.
double ThreadUse::seconds_of(int tid) const {
    const auto schedstat = root_.proc().text(fmt::format("{}/schedstat", tid));
    if (schedstat && !schedstat->empty())
        if (const auto spent = parse_number<std::uint64_t>(split_words(*schedstat).front()))
            return static_cast<double>(*spent) * 1e-9;
    const auto stat = root_.proc().text(fmt::format("{}/stat", tid)).value_or("");
    const auto words = split_words(std::string_view(stat).substr(std::min(stat.rfind(')') + 1, stat.size())));
    if (words.size() < 13) return 0; // utime and stime are fields 14 and 15, proc_pid_stat(5)
    const auto ticks = parse_number<std::uint64_t>(words[11]).value_or(0) +
                       parse_number<std::uint64_t>(words[12]).value_or(0);
    return static_cast<double>(ticks) / static_cast<double>(std::max(1L, ::sysconf(_SC_CLK_TCK)));
}

constexpr double round_grace_seconds = 5;

Result<void> place_all(const host::Root& root, const Testbed& testbed, const CpuSet& cpus, bool bound) {
    const auto count = static_cast<unsigned>(testbed.paths.size());
    for (unsigned i = 0; i < count; ++i) {
        const CpuSet where = bound ? CpuSet{cpu_of(i, count, cpus)} : cpus;
        if (auto done = place_interrupts(root, testbed.paths[i], where); !done) return done;
    }
    return {};
}

/// A round without an interface ends in many ways: its streams stall, its thread is not there to be moved.
RoundFault explained(RoundFault fault, const Testbed& testbed) {
    if (fault.outcome == Outcome::killed) return fault;
    for (const auto& path : testbed.paths)
        if (testbed.spaces[path.here].sys().text("class/net/" + path.nic + "/carrier") != "1")
            return {Outcome::link_lost, path.nic + " has gone or lost its link: " + fault.reason};
    return fault;
}

std::expected<Round, RoundFault> measure_round(const host::Root& root, const Testbed& testbed,
                                               const RoundSetup& setup, Model model) {
    if (auto done = place_all(root, testbed, setup.cpus, binds_interrupts(model)); !done)
        return std::unexpected(to_fault(done.error()));
    auto gate = Gate::make();
    if (!gate) return std::unexpected(to_fault(gate.error()));
    Streams streams(testbed, setup, model);
    if (auto done = streams.start(*gate); !done) return std::unexpected(to_fault(done.error()));
    if (auto done =
            streams.wait_until_connected(*gate, monotonic_seconds() + connect_seconds + round_grace_seconds);
        !done)
        return std::unexpected(done.error());

    const ThreadUse threads(root, testbed);
    RoundCosts costs;
    costs.first = read_activity(root);
    const double spent = threads.seconds();
    const auto counted = threads.cycles();
    gate->open();
    auto ends =
        streams.collect(monotonic_seconds() + setup.seconds + setup.stall_seconds + round_grace_seconds);
    if (!ends) return std::unexpected(ends.error());
    costs.threads_seconds = threads.seconds() - spent;
    if (const auto now = threads.cycles(); now && counted) costs.threads_cycles = *now - *counted;
    costs.last = read_activity(root);
    costs.hz = read_frequency(root);
    return make_round(testbed, setup.point.work, {std::move(*ends), streams.latencies()}, costs);
}

/// Code, caches and the CPU's frequency settle before the first model is measured, and so do the threads that
/// handle packets: where they run at first, all on one CPU and the processes on another, costs requests and
/// responses half of their rate. The scheduler takes up to four seconds of short rounds to spread them (50,
/// then 90 thousand requests a second, 20,000 rescheduling interrupts a second, then none), or longer in one
/// long round, since it moves little that runs.
constexpr int warm_up_rounds = 16;
constexpr double warm_up_seconds = 0.25; ///< of each
/// For a round's processes to start, connect and end.
constexpr double overhead_seconds = 0.05;

std::vector<PointResult> empty_results(const ModelsSetup& setup) {
    std::vector<PointResult> results;
    for (const auto& point : setup.points) {
        results.push_back({point, {}});
        for (const Model model : setup.models)
            results.back().models.push_back({model, {}});
    }
    return results;
}

} // namespace

CostParts CostParts::times(double factor) const {
    CostParts product{processes * factor, softirq * factor, std::nullopt};
    if (interrupts) product.interrupts = *interrupts * factor;
    return product;
}

Cost cost_of(const Testbed& testbed, const EndReport& end, const RoundCosts& costs) {
    const bool threads = has_threads(testbed), told = tells_interrupt_time(costs.last);
    Cost cost;
    cost.cpu_seconds = seconds_of(end, costs, threads, told);
    cost.parts_note = note_of(threads, told);
    const char* of = threads ? "the processes and NAPI threads under test"
                             : "the processes under test and all interrupt work of the machine";
    if (end.cycles && costs.threads_cycles && threads) {
        cost.cycles = CostParts{static_cast<double>(*end.cycles), static_cast<double>(*costs.threads_cycles),
                                std::nullopt};
        cost.cycles_source = fmt::format("hardware counters of {}", of);
    } else if (costs.hz) {
        cost.cycles = cost.cpu_seconds.times(*costs.hz);
        cost.cycles_source = fmt::format("CPU time of {} times {:.3f} GHz", of, *costs.hz / 1e9);
    } else {
        cost.cycles_source = no_cost;
    }
    return cost;
}

std::expected<Round, RoundFault> make_round(const Testbed& testbed, Work work, const RoundEnds& both,
                                            const RoundCosts& costs) {
    measure::Report report;
    report.outcome = Outcome::done;
    fill(report, both.ends, std::nullopt);
    if (report.outcome != Outcome::done) return std::unexpected(RoundFault{report.outcome, report.reason});
    const EndReport& end = work == Work::transmit ? *report.transmitter : *report.receiver;
    const auto cost = cost_of(testbed, end, costs);
    Round round{{}, cost.cycles_source, cost.parts_note};
    auto& sample = round.sample;
    sample.bits_per_second = report.bits_per_second;
    sample.bytes = report.bytes;
    sample.wall_seconds = report.seconds;
    sample.cpu_seconds = cost.cpu_seconds;
    if (cost.cycles) sample.cycles_per_bit = cost.cycles->times(1 / (8 * static_cast<double>(report.bytes)));
    sample.hardware = {end.instructions, end.cache_misses};
    sample.processes = {end.voluntary_switches + end.involuntary_switches, end.migrations,
                        report.transmitter->retransmits};
    sample.kernel = counts_between(costs.first, costs.last);
    if (work == Work::answer) sample.exchanges = exchanges_of(both.latencies);
    sample.cpus = cpus_between(costs.first, costs.last);
    for (auto& line : lines_between(costs.first, costs.last))
        if (takes_interrupt(testbed, line.irq)) sample.lines.push_back(std::move(line));
    return round;
}

RoundFault to_fault(const Error& error) { return {outcome_of(error.code), error.to_string()}; }

std::expected<Round, RoundFault> run_round(const host::Root& root, const Testbed& testbed,
                                           const RoundSetup& setup, Model model) {
    auto round = measure_round(root, testbed, setup, model);
    if (!round) return std::unexpected(explained(std::move(round.error()), testbed));
    return round;
}

std::size_t rounds_of(const ModelsSetup& setup) {
    return setup.points.size() * setup.models.size() * setup.rounds;
}

double expected_seconds(const ModelsSetup& setup) {
    return warm_up_rounds * (std::min(warm_up_seconds, setup.round.seconds) + overhead_seconds) +
           static_cast<double>(rounds_of(setup)) * (setup.round.seconds + overhead_seconds);
}

ModelsReport run_models(const host::Root& root, const Testbed& testbed, const ModelsSetup& setup) {
    ModelsReport report;
    report.outcome = measure::Outcome::done;
    report.setup = testbed.description;
    report.connections = static_cast<unsigned>(testbed.paths.size());
    report.round_seconds = setup.round.seconds;
    report.cpus = setup.round.cpus;
    report.points = empty_results(setup);
    const double began = monotonic_seconds();
    const auto end = [&](const RoundFault& fault) {
        report.is_whole = false;
        report.outcome = fault.outcome;
        report.reason = fault.reason;
        report.seconds = monotonic_seconds() - began;
        return report;
    };
    RoundSetup present = setup.round;
    present.point = setup.points.front();
    present.seconds = std::min(warm_up_seconds, setup.round.seconds);
    for (int i = 0; i < warm_up_rounds; ++i)
        if (const auto round = run_round(root, testbed, present, setup.models.front()); !round)
            return end(round.error());
    present.seconds = setup.round.seconds;
    if (setup.progress) setup.progress(0, rounds_of(setup));
    const auto order = interleave(setup.points.size() * setup.models.size(), setup.rounds);
    for (std::size_t i = 0; i < order.size(); ++i) {
        auto& point = report.points[order[i] / setup.models.size()];
        auto& result = point.models[order[i] % setup.models.size()];
        present.point = point.point;
        auto round = run_round(root, testbed, present, result.model);
        if (!round) return end(round.error());
        report.cycles_source = round->cycles_source;
        report.parts_note = round->parts_note;
        result.samples.push_back(std::move(round->sample));
        if (setup.progress) setup.progress(i + 1, order.size());
    }
    report.seconds = monotonic_seconds() - began;
    return report;
}

Result<Gate> Gate::make() {
    std::array<int, 2> bell{}, barrier{};
    if (::pipe2(bell.data(), O_CLOEXEC | O_NONBLOCK) != 0) return fail("cannot make a pipe", {}, errno);
    host::Fd arrivals(bell[0]), ringer(bell[1]);
    if (::pipe2(barrier.data(), O_CLOEXEC) != 0) return fail("cannot make a pipe", {}, errno);
    return Gate(std::move(arrivals), std::move(ringer), host::Fd(barrier[0]), host::Fd(barrier[1]));
}

void Gate::arrive() {
    holder_.reset(); // which would hold the gate shut for the others
    const char byte = 0;
    while (::write(bell_.get(), &byte, 1) < 0 && errno == EINTR) {
    }
}

void Gate::wait() {
    arrive();
    char byte = 0;
    while (::read(barrier_.get(), &byte, 1) < 0 && errno == EINTR) {
    }
}

std::size_t Gate::count_arrivals() {
    std::array<char, 256> bytes{};
    const auto got = ::read(arrivals_.get(), bytes.data(), bytes.size());
    return got > 0 ? static_cast<std::size_t>(got) : 0;
}

} // namespace affinityd::ttcp
