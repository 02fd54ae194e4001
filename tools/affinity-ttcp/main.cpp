// SPDX-License-Identifier: Apache-2.0
// affinity-ttcp: a sender and receiver in the style of ttcp that reports what the transfer cost.
#include "affinity-ttcp/engine/busy.hpp"
#include "affinity-ttcp/options.hpp"
#include "affinity-ttcp/print.hpp"
#include "host/root.hpp"

#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
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

/// A sink for other machines: one connection after the other, each bounded by --seconds and --bytes.
int serve(const host::Root& root, const Options& options, int listener) {
    ::fcntl(listener, F_SETFL, ::fcntl(listener, F_GETFL) | O_NONBLOCK);
    while (true) {
        pollfd item{listener, POLLIN, 0};
        const int wait =
            options.idle_exit_seconds > 0 ? static_cast<int>(options.idle_exit_seconds * 1000) : -1;
        const int ready = ::poll(&item, 1, wait);
        if (ready == 0) return 0;
        if (ready < 0) {
            if (errno == EINTR) continue;
            return 1;
        }
        // A peer that fails does not end the sink.
        show(options, run_receive(root, options.session, listener));
    }
}

int receive(const host::Root& root, const Options& options) {
    constexpr int passed = SD_LISTEN_FDS_START;
    if (options.mode == Mode::sink && ::sd_listen_fds(1) >= 1) {
        if (::sd_is_socket(passed, AF_UNSPEC, SOCK_STREAM, 0) > 0) // Accept=yes: a connection
            return show(options, run_connected(root, options.session, passed));
        return serve(root, options, passed);
    }
    const auto listener = listen_at(options.peer, options.session.socket, options.session.streams);
    if (!listener) return show(options, without_run(measure::Outcome::failed, listener.error().to_string()));
    if (options.mode == Mode::sink) return serve(root, options, listener->get());
    return show(options, run_receive(root, options.session, listener->get()));
}

} // namespace

int main(int argc, char** argv) {
    auto options = parse_options(argc, argv);
    if (!options) return options.error();
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
    case Mode::sink:
        return receive(*root, *options);
    }
    return 1;
}
