// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/options.hpp"

#include "base/cpu_set.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <limits>

namespace affinityd::ttcp {

namespace {

struct Modes {
    bool transmit = false, receive = false, loopback = false, sink = false;
};

/// Options that need more than CLI11's own checks.
struct Raw {
    Modes mode;
    std::string host, listen, target, port = "5001", cpus, receive_cpus, unit = "K";
    std::uint64_t buffers = 2048;
    std::size_t length = 0;
    bool request = false;
};

void add_mode_options(CLI::App& cli, Raw& raw) {
    cli.add_flag("-t,--transmit", raw.mode.transmit, "transmit to HOST");
    cli.add_flag("-r,--receive", raw.mode.receive, "listen and receive");
    cli.add_flag("--loopback", raw.mode.loopback,
                 "both ends on this machine over the loopback interface; implies -s");
    cli.add_flag(
        "--sink", raw.mode.sink,
        "serve receiving streams at a socket from the service manager, or at --port of this machine only");
    cli.add_option("--listen", raw.listen, "with --sink: the address to listen at; *: every address");
    cli.add_option("--target", raw.target, "HOST:PORT, the same as -t -s -p PORT HOST");
    cli.add_option("host", raw.host, "with -t: where to; with -r: the address to listen at");
    cli.add_option("-p,--port", raw.port, "TCP port")->capture_default_str();
}

void add_load_options(CLI::App& cli, Raw& raw, Load& load) {
    cli.add_option("-l,--length", raw.length,
                   "bytes of one read or write; default 8192 as in ttcp, 131072 with --loopback and --target")
        ->check(CLI::Range(1, 64 << 20));
    cli.add_option("-n,--buffers", raw.buffers, "buffers to transmit, unless --seconds or --bytes is given")
        ->capture_default_str();
    cli.add_option("--seconds", load.seconds, "time to transmit, or at most to receive")
        ->check(CLI::Range(0.0, 86400.0));
    cli.add_option("--bytes", load.bytes, "bytes to transmit by each stream, or at most to receive");
    cli.add_option("--stall", load.stall_seconds, "seconds without progress after which the peer is given up")
        ->capture_default_str()
        ->check(CLI::Range(0.1, 3600.0));
}

void add_session_options(CLI::App& cli, Raw& raw, Session& session) {
    cli.add_flag("-D,--nodelay", session.socket.nodelay, "set TCP_NODELAY");
    cli.add_option("-b,--sockbuf", session.socket.buffer_bytes,
                   "socket buffer size; 0: the kernel's own sizing")
        ->check(CLI::Range(0, 1 << 30));
    cli.add_option("--streams", session.streams, "connections, each in a process of its own")
        ->capture_default_str()
        ->check(CLI::Range(1, 1024));
    cli.add_option("--cpus", raw.cpus,
                   "CPU list that this end's streams take in turn (with --loopback: the transmitters)");
    cli.add_option("--receive-cpus", raw.receive_cpus, "with --loopback: CPU list of the receivers");
    cli.add_option("--source", session.socket.source, "local address to connect from");
    cli.add_option("--wait", session.connect_seconds, "seconds to wait for a connection to be made")
        ->capture_default_str()
        ->check(CLI::Range(0.1, 3600.0));
}

void add_other_options(CLI::App& cli, Raw& raw, Options& options) {
    cli.add_flag("-s,--pattern", options.pattern,
                 "transmit a pattern, drop what is received (else standard input and output)");
    cli.add_option("--peers", options.most_peers, "with --sink: connections at once; more wait")
        ->capture_default_str()
        ->check(CLI::Range(1, 1024));
    cli.add_option("--idle-exit", options.idle_exit_seconds,
                   "with --sink: ends after so many seconds without a peer; 0: never")
        ->capture_default_str()
        ->check(CLI::Range(0.0, 86400.0));
    cli.add_option("--idle-only", options.busy_above,
                   "skip the run if the machine or the NIC is busy above so many percent")
        ->check(CLI::Range(1, 100));
    cli.add_option("-f,--format", raw.unit, "unit of the rate: k, m, g bits or K, M, G bytes a second")
        ->capture_default_str()
        ->check(CLI::IsMember({"k", "K", "m", "M", "g", "G"}));
    cli.add_flag("--json", options.json, "one line of JSON instead of text");
    cli.add_option(
           "--child-of", options.child_of,
           "give up privileges, be at nice 10, and end with the parent process, which has this number")
        ->check(CLI::Range(1, std::numeric_limits<int>::max()));
    cli.add_flag("--request", raw.request,
                 "alone: the options come as a line of JSON on standard input, and the run ends with it");
}

std::string read_cpus(const char* option, const std::string& text, std::vector<unsigned>& cpus) {
    const auto set = CpuSet::parse_list(text);
    if (!set) return option + (": " + set.error().to_string());
    cpus = set->to_vector();
    return {};
}

/// The fault of the options; "": there is none.
std::string check_mode(const Raw& raw, Options& options) {
    const auto& mode = raw.mode;
    if (raw.request) return "--request stands alone";
    if (mode.transmit + mode.receive + mode.loopback + mode.sink + !raw.target.empty() != 1)
        return "give one of -t, -r, --loopback, --sink and --target";
    options.mode = mode.receive    ? Mode::receive
                   : mode.loopback ? Mode::loopback
                   : mode.sink     ? Mode::sink
                                   : Mode::transmit;
    if (options.mode == Mode::loopback || options.mode == Mode::sink || !raw.target.empty())
        options.pattern = true;
    return {};
}

std::string check_cpus(const Raw& raw, Mode mode, Session& session) {
    if (auto fault = read_cpus("--cpus", raw.cpus, session.transmit_cpus); !fault.empty()) return fault;
    if (auto fault = read_cpus("--receive-cpus", raw.receive_cpus, session.receive_cpus); !fault.empty())
        return fault;
    if (!raw.receive_cpus.empty() && mode != Mode::loopback)
        return "--receive-cpus is for --loopback; use --cpus";
    if (mode == Mode::receive || mode == Mode::sink) session.receive_cpus = session.transmit_cpus;
    return {};
}

std::string check_peer(const Raw& raw, Options& options) {
    const bool is_sink = options.mode == Mode::sink;
    if (!is_sink && !raw.listen.empty()) return "--listen is for --sink";
    options.peer = {is_sink ? raw.listen : raw.host, raw.port};
    if (options.mode != Mode::transmit) return {};
    const std::string& text = raw.mode.transmit ? raw.host : raw.target;
    if (text.empty()) return "-t needs a host";
    auto peer = parse_address(text, raw.port);
    if (!peer) return peer.error().to_string();
    options.peer = *peer;
    return {};
}

std::string check_load(const Raw& raw, Options& options) {
    constexpr std::size_t length_of_ttcp = 8192, own_length = 131072;
    auto& load = options.session.load;
    if (options.session.streams > 1 && !options.pattern)
        return "several streams need -s: there is one standard input and output only";
    const bool own = raw.mode.loopback || !raw.target.empty();
    load.buffer_bytes = raw.length > 0 ? raw.length : own ? own_length : length_of_ttcp;
    const bool is_source = options.mode == Mode::transmit || options.mode == Mode::loopback;
    if (is_source && options.pattern && load.seconds <= 0 && load.bytes == 0) {
        if (raw.buffers == 0) return "-n, --bytes or --seconds must be above zero";
        load.buffers = raw.buffers;
    }
    if (options.mode == Mode::sink) load.least_bytes = least_of_a_peer;
    for (const auto& [name, seconds] :
         {std::pair("--seconds", load.seconds), std::pair("--stall", load.stall_seconds),
          std::pair("--wait", options.session.connect_seconds),
          std::pair("--idle-exit", options.idle_exit_seconds)})
        if (!std::isfinite(seconds)) return std::string(name) + " is not a number";
    options.unit = raw.unit.front();
    return {};
}

std::string check(const Raw& raw, Options& options) {
    if (auto fault = check_mode(raw, options); !fault.empty()) return fault;
    if (auto fault = check_cpus(raw, options.mode, options.session); !fault.empty()) return fault;
    if (auto fault = check_peer(raw, options); !fault.empty()) return fault;
    return check_load(raw, options);
}

} // namespace

std::expected<Options, int> parse_options(const std::vector<std::string>& words) {
    Options options;
    Raw raw;
    CLI::App cli("Moves bytes over TCP and reports what that cost; works with any ttcp.", "affinity-ttcp");
    cli.set_version_flag("--version", "affinity-ttcp " AFFINITYD_VERSION);
    add_mode_options(cli, raw);
    add_load_options(cli, raw, options.session.load);
    add_session_options(cli, raw, options.session);
    add_other_options(cli, raw, options);
    try {
        std::vector<std::string> last_first(words.rbegin(), words.rend() - 1);
        cli.parse(std::move(last_first));
        if (const auto fault = check(raw, options); !fault.empty()) throw CLI::ValidationError(fault);
    } catch (const CLI::ParseError& error) {
        return std::unexpected(cli.exit(error) == 0 ? 0 : 2);
    }
    return options;
}

} // namespace affinityd::ttcp
