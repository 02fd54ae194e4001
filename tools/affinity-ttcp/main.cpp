// SPDX-License-Identifier: Apache-2.0
// affinity-ttcp: a sender and receiver in the style of ttcp that reports what the transfer cost.
#include "affinity-ttcp/engine/activity.hpp"
#include "affinity-ttcp/options.hpp"
#include "base/clock.hpp"
#include "host/fd.hpp"
#include "host/root.hpp"
#include "host/self.hpp"
#include "measure/program.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <csignal>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

using namespace affinityd::ttcp;
using affinityd::fail;
using affinityd::monotonic_seconds;
using affinityd::Result;
namespace host = affinityd::host;
namespace measure = affinityd::measure;

namespace {

using measure::EndReport;
using measure::Outcome;
using measure::Report;

/// "1234.56 KB/sec". As in ttcp, a lower-case unit means bits in powers of 1000, an upper-case one bytes in
/// powers of 1024.
std::string rate(double bits_per_second, char unit) {
    const bool is_bits = std::islower(static_cast<unsigned char>(unit)) != 0;
    const int power = std::toupper(static_cast<unsigned char>(unit)) == 'K'   ? 1
                      : std::toupper(static_cast<unsigned char>(unit)) == 'M' ? 2
                                                                              : 3;
    const double value =
        is_bits ? bits_per_second / std::pow(1000, power) : bits_per_second / 8 / std::pow(1024, power);
    return fmt::format("{:.2f} {}{}", value,
                       static_cast<char>(std::toupper(static_cast<unsigned char>(unit))),
                       is_bits ? "bit/sec" : "B/sec");
}

std::string known(const std::optional<std::uint64_t>& value) {
    return value ? fmt::format("{}", *value) : "not known";
}

void print_end(std::FILE* out, const char* name, const Options& options, const Report& report,
               const EndReport& end) {
    const double seconds = report.seconds;
    const double bits = seconds > 0 ? static_cast<double>(end.bytes) * 8 / seconds : 0;
    const auto calls = static_cast<double>(end.calls);
    const double cpu = end.user_seconds + end.system_seconds;
    fmt::print(out, "{}: {} bytes in {:.2f} real seconds = {} +++\n", name, end.bytes, seconds,
               rate(bits, options.unit));
    fmt::print(out, "{}: {} I/O calls, msec/call = {:.4f}, calls/sec = {:.2f}\n", name, end.calls,
               calls > 0 ? seconds * 1000 / calls : 0, seconds > 0 ? calls / seconds : 0);
    fmt::print(out, "{}: {:.2f}user {:.2f}sys {:.2f}real {:.0f}% {}+{}csw, migrations: {}, retransmits: {}\n",
               name, end.user_seconds, end.system_seconds, seconds, seconds > 0 ? 100 * cpu / seconds : 0,
               end.voluntary_switches, end.involuntary_switches, known(end.migrations),
               known(end.retransmits));
    if (end.cycles)
        fmt::print(out, "{}: {} cycles, {} instructions, {} cache misses\n", name, *end.cycles,
                   known(end.instructions), known(end.cache_misses));
    if (end.cache_misses && end.bytes > 0)
        fmt::print(out, "{}: {:.6f} cache misses per bit\n", name,
                   static_cast<double>(*end.cache_misses) / (8 * static_cast<double>(end.bytes)));
}

/// The options that are asked for over a connection: the line of measure/program.hpp, of at most 8 KiB. Ends
/// the process after 10 s without it.
Result<std::vector<std::string>> read_request(int connection) {
    constexpr std::size_t most = 8192;
    constexpr unsigned seconds = 10;
    ::alarm(seconds);
    std::string line;
    std::array<char, 1024> chunk{};
    while (!line.ends_with('\n')) {
        if (line.size() > most) return fail("the request is too long");
        const auto got = ::read(connection, chunk.data(), chunk.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail("cannot read the request", {}, errno);
        if (got == 0) return fail("the request ends before its line does");
        line.append(chunk.data(), static_cast<std::size_t>(got));
    }
    ::alarm(0);
    return measure::from_line(line);
}

/// From now on this process is ended by SIGIO when the other end of the connection goes away (O_ASYNC,
/// fcntl(2)): no program waits for the report then.
Result<void> end_with(int connection) {
    const int flags = ::fcntl(connection, F_GETFL);
    if (flags < 0 || ::fcntl(connection, F_SETOWN, ::getpid()) != 0 ||
        ::fcntl(connection, F_SETFL, flags | O_ASYNC) != 0)
        return fail("cannot watch the connection", {}, errno);
    // The other end may have gone before this process could be told.
    pollfd item{connection, POLLRDHUP, 0};
    if (::poll(&item, 1, 0) > 0) return fail("no program waits for the report");
    return {};
}

/// The report in the form of ttcp, one block for each end that ran here, followed by what ttcp does not
/// measure.
void print(std::FILE* out, const Options& options, const Report& report) {
    const auto& load = options.session.load;
    fmt::print(out, "ttcp: buflen={}, streams={}, path={}{}\n", load.buffer_bytes, report.setup.streams,
               report.setup.path, report.setup.touches_nic_interrupts ? "" : " (touches no NIC interrupt)");
    if (report.transmitter) print_end(out, "ttcp-t", options, report, *report.transmitter);
    if (report.receiver) print_end(out, "ttcp-r", options, report, *report.receiver);
    if (report.ghz_per_gbps)
        fmt::print(out, "ttcp: {:.3f} GHz/Gbps, by {}\n", *report.ghz_per_gbps, report.cycles_source);
    for (const auto& cpu : report.cpus)
        fmt::print(out,
                   "ttcp: CPU {}: {:.2f}user {:.2f}sys {:.2f}irq {:.2f}softirq, {} interrupts (all that ran "
                   "there)\n",
                   cpu.cpu, cpu.user_seconds, cpu.system_seconds, cpu.irq_seconds, cpu.softirq_seconds,
                   cpu.interrupts);
    for (const auto& line : report.lines)
        fmt::print(out, "ttcp: IRQ {} {}: {} on CPU {}\n", line.irq, line.label, line.count, line.cpu);
    if (report.outcome != Outcome::done)
        fmt::print(out, "ttcp: {}: {}\n", to_string(report.outcome), report.reason);
}

/// The report goes to standard output, unless that carries the data.
std::FILE* report_file(const Options& options) {
    return options.mode == Mode::receive && !options.pattern ? stderr : stdout;
}

int show(const Options& options, const measure::Report& report) {
    std::FILE* out = report_file(options);
    if (options.json)
        fmt::print(out, "{}\n", measure::to_json(report));
    else
        print(out, options, report);
    return std::fflush(out) == 0 && report.outcome == measure::Outcome::done ? 0 : 1;
}

measure::Report without_run(const measure::Outcome outcome, const std::string& reason) {
    measure::Report report;
    report.outcome = outcome;
    report.reason = reason;
    return report;
}

/// Why a run that wants a quiet machine does not begin; "" if it does.
std::string why_not_now(const host::Root& root, const Options& options) {
    constexpr double look_seconds = 1;
    if (options.busy_above == 0 || (options.mode != Mode::loopback && options.mode != Mode::transmit))
        return {};
    const auto peer = options.mode == Mode::transmit ? std::optional(options.peer) : std::nullopt;
    return why_busy(look_around(root, peer, look_seconds), options.busy_above / 100.0);
}

/// The processes that serve a sink's peers, one each.
class Peers {
  public:
    [[nodiscard]] unsigned count() const { return count_; }
    /// Forgets those that have ended.
    void reap() {
        pid_t ended = 0;
        while (count_ > 0 && (ended = ::waitpid(-1, nullptr, WNOHANG)) > 0)
            --count_;
        if (ended < 0 && errno == ECHILD) count_ = 0;
    }
    void add(const host::Root& root, const Options& options, const host::Fd& connection, int listener) {
        const pid_t parent = ::getpid();
        const pid_t child = ::fork();
        if (child > 0) ++count_;
        if (child != 0) return; // without a process the connection ends
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(1); // the parent died before the line above
        ::close(listener);
        show(options, run_connected(root, options.session, connection.get()));
        ::_exit(0);
    }

  private:
    unsigned count_ = 0;
};

/// Receives what comes to a listening socket, as this user or, for root, as the user nobody: no peer can do
/// more than send. 0: no peer has come for the sink's time; 1: not possible.
int serve(const host::Root& root, const Options& options, int listener) {
    constexpr double look_seconds = 0.2; // between two looks for peers that have ended
    if (!host::drop_privileges()) return 1;
    ::fcntl(listener, F_SETFL, ::fcntl(listener, F_GETFL) | O_NONBLOCK);
    ::signal(SIGCHLD, SIG_DFL); // where a parent had it ignored, children that end cannot be waited for
    const double most_idle = options.idle_exit_seconds;
    Peers peers;
    double last = monotonic_seconds(); // when a peer was seen
    while (true) {
        peers.reap();
        const double now = monotonic_seconds();
        if (peers.count() > 0) last = now;
        const double left = last + most_idle - now;
        if (most_idle > 0 && left <= 0) return 0;
        pollfd item{listener, POLLIN, 0};
        const bool is_full = peers.count() >= options.most_peers;
        double wait = most_idle > 0 ? left : 3600;
        if (peers.count() > 0) wait = std::min(wait, look_seconds);
        const int ready = ::poll(&item, is_full ? 0 : 1, static_cast<int>(wait * 1000) + 1);
        if (ready < 0 && errno != EINTR) return 1;
        if (ready <= 0) continue;
        const host::Fd connection(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
        if (connection) peers.add(root, options, connection, listener);
        last = monotonic_seconds();
    }
}

/// A listener for this machine's own peers, unless the options say more.
affinityd::Result<host::Fd> sink_listener(const Options& options) {
    constexpr unsigned backlog = 64;
    Address here = options.peer;
    if (!here.host.empty()) {
        if (here.host == "*") here.host.clear();
        return listen_at(here, options.session.socket, backlog);
    }
    here.host = "127.0.0.1";
    auto listener = listen_at(here, options.session.socket, backlog);
    if (listener) return listener;
    here.host = "::1";
    return listen_at(here, options.session.socket, backlog);
}

int sink(const host::Root& root, const Options& options) {
    constexpr int passed = SD_LISTEN_FDS_START;
    if (::sd_listen_fds(1) >= 1) {
        if (::sd_is_socket(passed, AF_UNSPEC, SOCK_STREAM, 0) > 0) // Accept=yes: a connection
            return show(options, run_connected(root, options.session, passed));
        return serve(root, options, passed);
    }
    const auto listener = sink_listener(options);
    if (!listener) return show(options, without_run(measure::Outcome::failed, listener.error().to_string()));
    return serve(root, options, listener->get());
}

int receive(const host::Root& root, const Options& options) {
    const auto listener = listen_at(options.peer, options.session.socket, options.session.streams);
    if (!listener) return show(options, without_run(measure::Outcome::failed, listener.error().to_string()));
    return show(options, run_receive(root, options.session, listener->get()));
}

} // namespace

int main(int argc, char** argv) {
    std::vector<std::string> words(argv, argv + argc);
    if (words.size() == 2 && words[1] == "--request") {
        const auto requested = read_request(STDIN_FILENO);
        const auto watched = requested ? end_with(STDIN_FILENO) : std::unexpected(requested.error());
        if (!watched) {
            fmt::print(stderr, "affinity-ttcp: {}\n", watched.error().to_string());
            return 2;
        }
        words.pop_back();
        words.insert(words.end(), requested->begin(), requested->end());
    }
    auto options = parse_options(words);
    if (!options) return options.error();
    if (options->child_of > 0 && !measure::lower_self(options->child_of)) {
        const auto why = "cannot give up privileges, or the parent has ended";
        return show(*options, without_run(measure::Outcome::failed, why));
    }
    const auto root = host::Root::open();
    if (!root) return show(*options, without_run(measure::Outcome::failed, root.error().to_string()));
    if (const auto why = why_not_now(*root, *options); !why.empty())
        return show(*options, without_run(measure::Outcome::skipped, why));
    auto& load = options->session.load;
    if (!options->pattern && options->mode == Mode::transmit) load.input = STDIN_FILENO;
    if (!options->pattern && options->mode == Mode::receive) load.output = STDOUT_FILENO;
    switch (options->mode) {
    case Mode::loopback:
        return show(*options, run_loopback(*root, options->session));
    case Mode::transmit:
        return show(*options, run_transmit(*root, options->session, options->peer));
    case Mode::receive:
        return receive(*root, *options);
    case Mode::sink:
        return sink(*root, *options);
    }
    return 1;
}
