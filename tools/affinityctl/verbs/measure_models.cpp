// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/measure_models.hpp"

#include "affinity-ttcp/models/run.hpp"
#include "affinity-ttcp/models/summary.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/picture.hpp"
#include "affinityctl/views/models_chart.hpp"
#include "affinityctl/views/models_tables.hpp"
#include "host/root.hpp"
#include "host/scheduler.hpp"

#include <CLI/CLI.hpp>
#include <csignal>
#include <memory>

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace affinityctl {

namespace {

using namespace affinityd;
namespace ttcp = affinityd::ttcp;

struct MeasureModelsOptions {
    unsigned connections = 8;
    std::string models = "none,irq,process,full";
    std::string cpus;
    std::string direction = "receive";
    std::string svg;
    std::string nics;
    std::vector<ttcp::NicPair> pairs;
    ttcp::ModelsSetup setup;
};

/// From here on SIGINT, SIGTERM and SIGHUP make a descriptor readable, so that the experiment ends in good
/// order.
Result<host::Fd> catch_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGINT, SIGTERM, SIGHUP})
        sigaddset(&set, number);
    ::sigprocmask(SIG_BLOCK, &set, nullptr);
    host::Fd file(::signalfd(-1, &set, SFD_CLOEXEC));
    if (!file) return fail("cannot watch signals", {}, errno);
    return file;
}

Result<void> read_pairs(const std::string& text, std::vector<ttcp::NicPair>& pairs) {
    if (text.empty()) return {};
    for (const auto& pair : CLI::detail::split(text, ',')) {
        const auto names = CLI::detail::split(pair, ':');
        if (names.size() != 2 || names[0].empty() || names[1].empty())
            return fail("expected pairs of NICs as in eth1:eth2,eth3:eth4", text);
        pairs.emplace_back(names[0], names[1]);
    }
    return {};
}

Result<void> complete(MeasureModelsOptions& options) {
    if (auto done = read_pairs(options.nics, options.pairs); !done) return done;
    options.setup.models.clear();
    for (const auto& name : CLI::detail::split(options.models, ',')) {
        const auto model = ttcp::parse_model(name);
        if (!model) return fail("no such model; there are none, irq, process and full", name);
        options.setup.models.push_back(*model);
    }
    if (options.setup.models.size() < 2 || options.setup.models.size() > 8)
        return fail("expected 2 to 8 models to compare", options.models);
    options.setup.round.receives = options.direction == "receive";
    const auto allowed = host::get_affinity(0);
    if (!allowed) return fail("cannot read this program's CPUs", {}, allowed.error());
    auto& cpus = options.setup.round.cpus;
    cpus = *allowed;
    if (options.cpus.empty()) return {};
    const auto asked = CpuSet::parse_list(options.cpus);
    if (!asked) return std::unexpected(asked.error());
    if (asked->empty() || !allowed->contains(*asked))
        return fail("not all of these CPUs can be used; there are " + allowed->to_list(), options.cpus);
    cpus = *asked;
    return {};
}

int run(const Globals& globals, MeasureModelsOptions options) {
    if (auto done = complete(options); !done) {
        complain({exit_usage, done.error().to_string()});
        return exit_usage;
    }
    const auto stop = catch_signals();
    const auto root = host::Root::open();
    if (!stop) return complain(stop.error());
    if (!root) return complain(root.error());
    options.setup.round.stop = stop->get();
    const bool interactive = ::isatty(STDERR_FILENO) == 1;
    if (interactive)
        options.setup.progress = [](std::size_t done, std::size_t all) {
            fmt::print(stderr, "\rround {} of {} ", done, all);
        };
    ttcp::ModelsReport report;
    {
        const auto testbed = options.pairs.empty() ? ttcp::make_veth_testbed(*root, options.connections)
                                                   : ttcp::make_nic_testbed(*root, options.pairs);
        if (!testbed) return complain(testbed.error());
        report = ttcp::run_models(*root, *testbed, options.setup);
    }
    if (interactive) fmt::print(stderr, "\r\033[K");
    if (globals.json)
        fmt::print("{}\n", ttcp::to_json(report));
    else
        fmt::print("{}", models_text(report, globals.color));
    if (!options.svg.empty())
        if (const int code = write_picture(options.svg, models_svg(report, ttcp::summarize(report.results)));
            code != exit_ok)
            return code;
    return report.outcome == measure::Outcome::done ? exit_ok : exit_failure;
}

void add_testbed_options(CLI::App& verb, MeasureModelsOptions& options) {
    verb.add_option("--connections", options.connections, "connections, each over an interface of its own")
        ->capture_default_str()
        ->check(CLI::Range(1U, ttcp::most_connections));
    verb.add_option("--nics", options.nics,
                    "pairs of NICs joined by a cable, as eth1:eth2,eth3:eth4, none of them in use; each "
                    "receives a connection; at the end they are put back")
        ->excludes("--connections");
}

void add_round_options(CLI::App& verb, MeasureModelsOptions& options) {
    verb.add_option("--rounds", options.setup.rounds, "rounds of each model; below 4 there is no verdict")
        ->capture_default_str()
        ->check(CLI::Range(1, 1000));
    verb.add_option("--seconds", options.setup.round.seconds, "length of a round")
        ->capture_default_str()
        ->check(CLI::Range(0.1, 60.0));
    verb.add_option("--models", options.models,
                    "which, in this order; the others are compared with the first; none,none: an A/A run")
        ->capture_default_str();
    verb.add_option("--cpus", options.cpus,
                    "CPU list of the system under test; default: all this program may use");
    verb.add_option("--direction", options.direction, "what the system under test does")
        ->capture_default_str()
        ->check(CLI::IsMember({"receive", "transmit"}));
    verb.add_option("--length", options.setup.round.buffer_bytes, "bytes of one read or write")
        ->capture_default_str()
        ->check(CLI::Range(1, 64 << 20));
    verb.add_option("--sockbuf", options.setup.round.socket_buffer,
                    "socket buffer size; 0: the kernel's own sizing, at which veth pairs lose packets")
        ->capture_default_str()
        ->check(CLI::Range(0, 1 << 30));
    verb.add_option("--svg", options.svg, "also draw it into this file");
}

} // namespace

void add_measure_models(CLI::App& parent, Globals& globals, int& status) {
    auto* verb = parent.add_subcommand(
        "models", "the four affinity models side by side, on veth pairs made for it or on NICs; needs root");
    const auto options = std::make_shared<MeasureModelsOptions>();
    add_testbed_options(*verb, *options);
    add_round_options(*verb, *options);
    verb->callback([&globals, &status, options] {
        if (!refuses_root(globals, status)) status = run(globals, *options);
    });
}

} // namespace affinityctl
