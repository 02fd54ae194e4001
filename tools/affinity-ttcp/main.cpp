// SPDX-License-Identifier: Apache-2.0
// affinity-ttcp: a sender and receiver in the style of ttcp that reports what the transfer cost.
#include "affinity-ttcp/engine/busy.hpp"
#include "affinity-ttcp/options.hpp"
#include "affinity-ttcp/print.hpp"
#include "affinity-ttcp/request.hpp"
#include "affinity-ttcp/sink.hpp"
#include "host/root.hpp"
#include "measure/program.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

using namespace affinityd::ttcp;
namespace host = affinityd::host;
namespace measure = affinityd::measure;

namespace {

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

int serve_at(const host::Root& root, const Options& options, int listener) {
    const auto report = [&](const measure::Report& of_peer) { show(options, of_peer); };
    return serve(root, {options.session, options.most_peers, options.idle_exit_seconds, report}, listener);
}

/// Of this machine's own, unless the options say more.
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
        return serve_at(root, options, passed);
    }
    const auto listener = sink_listener(options);
    if (!listener) return show(options, without_run(measure::Outcome::failed, listener.error().to_string()));
    return serve_at(root, options, listener->get());
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
