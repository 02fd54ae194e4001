// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/run.hpp"
#include "affinity-ttcp/models/summary.hpp"
#include "affinityctl/present/output.hpp"
#include "affinityctl/values/counted.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/experiment_outcome.hpp"
#include "affinityctl/verbs/option_values.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/models/picture.hpp"
#include "affinityctl/views/models/text.hpp"
#include "base/clock.hpp"
#include "host/root.hpp"
#include "host/scheduler.hpp"
#include "host/signals.hpp"

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace affinityctl {

namespace {

using namespace affinityd;
namespace ttcp = affinityd::ttcp;

const std::string one_byte = "1"; ///< each way
constexpr const char* wipe = "\r\033[K";

struct MeasureModelsOptions {
    unsigned connections = 8;
    std::string models = "none,irq,process,full";
    std::string cpus;
    std::string direction = "receive";
    std::optional<std::size_t> length; ///< none: that of a LoadPoint
    std::string sizes, exchanges;      ///< "": not asked for
    ExperimentOptions common;
    std::string nics;
    std::vector<ttcp::NicPair> pairs;
    ttcp::ModelsSetup setup;
};

/// While it lives, signals that end programs make a descriptor readable, so that the experiment ends in good
/// order. Afterwards they end the program, which may wait for who reads its results.
class CaughtSignals {
  public:
    CaughtSignals() {
        ::sigprocmask(SIG_BLOCK, &set_, &before_);
        file_.reset(::signalfd(-1, &set_, SFD_CLOEXEC));
    }
    CaughtSignals(const CaughtSignals&) = delete;
    CaughtSignals& operator=(const CaughtSignals&) = delete;
    ~CaughtSignals() {
        const timespec at_once{};
        while (::sigtimedwait(&set_, nullptr, &at_once) > 0) { // the experiment has ended for these
        }
        ::sigprocmask(SIG_SETMASK, &before_, nullptr);
    }
    [[nodiscard]] const host::Fd& file() const { return file_; }

  private:
    sigset_t set_ = host::stop_signals();
    sigset_t before_{};
    host::Fd file_;
};

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

Result<void> read_models(const std::string& text, std::vector<Model>& models) {
    models.clear();
    for (const auto& name : CLI::detail::split(text, ',')) {
        const auto model = ttcp::parse_model(name);
        if (!model) return fail("no such model; there are none, irq, process and full", name);
        models.push_back(*model);
    }
    if (models.size() < 2 || models.size() > 8) return fail("expected 2 to 8 models to compare", text);
    return {};
}

/// What is measured: streams in one or both directions at each size, then requests.
Result<void> read_points(const MeasureModelsOptions& options, std::vector<ttcp::LoadPoint>& points) {
    points.clear();
    if (options.direction == to_string(ttcp::Work::answer) && (options.length || !options.sizes.empty()))
        return affinityd::fail("is of streams, and --direction answer has none; see --rr",
                               options.length ? "--length" : "--sizes");
    std::vector<std::size_t> sizes{options.length.value_or(ttcp::LoadPoint{}.bytes)};
    if (!options.sizes.empty()) {
        auto read = ttcp::parse_sizes(options.sizes);
        if (!read) return std::unexpected(read.error());
        sizes = std::move(*read);
    }
    for (const auto work : {ttcp::Work::receive, ttcp::Work::transmit})
        if (options.direction == to_string(work) || options.direction == "both")
            for (const auto size : sizes)
                points.push_back({work, size, 0});
    if (options.exchanges.empty() && options.direction != to_string(ttcp::Work::answer)) return {};
    auto exchanges = ttcp::parse_exchanges(options.exchanges.empty() ? one_byte : options.exchanges);
    if (!exchanges) return std::unexpected(exchanges.error());
    points.insert(points.end(), exchanges->begin(), exchanges->end());
    return {};
}

Result<void> read_cpus(const MeasureModelsOptions& options, CpuSet& cpus) {
    const auto allowed = host::get_affinity(0);
    if (!allowed) return fail("cannot read this program's CPUs", {}, allowed.error());
    cpus = *allowed;
    if (options.cpus.empty()) return {};
    const auto asked = CpuSet::parse_list(options.cpus);
    if (!asked) return std::unexpected(asked.error());
    if (asked->empty() || !allowed->contains(*asked))
        return fail("not all of these CPUs can be used; there are " + allowed->to_list(), options.cpus);
    cpus = *asked;
    return {};
}

Result<void> complete(MeasureModelsOptions& options) {
    auto& setup = options.setup;
    if (auto done = read_pairs(options.nics, options.pairs); !done) return done;
    if (auto done = read_models(options.models, setup.models); !done) return done;
    if (auto done = read_points(options, setup.points); !done) return done;
    return read_cpus(options, setup.round.cpus);
}

std::string duration_text(double seconds) {
    const auto whole = static_cast<long>(seconds + 0.5);
    if (whole < 60) return fmt::format("{} s", whole);
    return fmt::format("{} min {} s", whole / 60, whole % 60);
}

/// Says beforehand how long it takes, and on a terminal, how far it is.
void announce(ttcp::ModelsSetup& setup) {
    const double expected = ttcp::expected_seconds(setup);
    fmt::print(stderr, "{} of {:g} s: about {}; Ctrl-C ends it with what there is by then\n",
               counted(ttcp::rounds_of(setup), "round"), setup.round.seconds, duration_text(expected));
    if (::isatty(STDERR_FILENO) != 1) return;
    fmt::print(stderr, "warming up");
    setup.progress = [began = monotonic_seconds()](std::size_t done, std::size_t all) mutable {
        if (done == 0) { // the first measured round begins
            began = monotonic_seconds();
            return;
        }
        constexpr std::size_t width = 30;
        const auto filled = done * width / all;
        const double each = (monotonic_seconds() - began) / static_cast<double>(done);
        const auto text =
            fmt::format("\r[{:#<{}}{:.<{}}] round {} of {}, about {} left\033[K", "", filled, "",
                        width - filled, done, all, duration_text(each * static_cast<double>(all - done)));
        std::fputs(text.c_str(), stderr); // which throws nothing if the terminal has gone
        if (done == all) std::fputs(wipe, stderr);
        std::fflush(stderr);
    };
}

int finish_models(const Globals& globals, const ExperimentOptions& options,
                  const ttcp::ModelsReport& report) {
    const auto views = work_views(report);
    const auto document = ttcp::to_json(report);
    if (report.outcome == measure::Outcome::done)
        keep_result(options, {.kind = "models",
                              .summary = summary_of(report, views),
                              .subject = "CPUs " + report.cpus.to_list(),
                              .seconds = report.seconds,
                              .detail = document});
    if (globals.json)
        fmt::print("{}\n", document);
    else if (options.svg != "-")
        fmt::print("{}", models_text(report, views, Page::of_output(globals.color)));
    const int code = options.svg.empty() ? exit_ok : write_picture(options.svg, models_svg(report, views));
    if (report.outcome == measure::Outcome::done) return code;
    return complain({exit_failure, report.reason + "; nothing is kept"});
}

int run(const Globals& globals, MeasureModelsOptions options) {
    if (const int code = check_experiment(globals, options.common); code != exit_ok) return code;
    if (auto done = complete(options); !done) {
        complain({exit_usage, done.error().to_string()});
        return exit_usage;
    }
    const auto root = host::Root::open();
    if (!root) return complain(root.error());
    ttcp::ModelsReport report;
    {
        const CaughtSignals stop;
        if (!stop.file()) return complain({"cannot watch signals", {}, errno});
        options.setup.round.stop = stop.file().get();
        const auto testbed = options.pairs.empty() ? ttcp::make_veth_testbed(*root, options.connections)
                                                   : ttcp::make_nic_testbed(*root, options.pairs);
        if (!testbed) return complain(testbed.error());
        announce(options.setup);
        report = ttcp::run_models(*root, *testbed, options.setup);
    }
    if (options.setup.progress) std::fputs(wipe, stderr);
    return finish_models(globals, options.common, report);
}

void add_testbed_options(CLI::App& verb, MeasureModelsOptions& options) {
    verb.add_option("--connections", options.connections, "connections, each over an interface of its own")
        ->capture_default_str()
        ->check(CLI::Range(1U, ttcp::most_connections));
    verb.add_option("--nics", options.nics,
                    "pairs of NICs joined by a cable, as eth1:eth2,eth3:eth4, none of them in use; each "
                    "receives a connection; at the end they are put back")
        ->check(not_empty())
        ->excludes("--connections");
}

void add_round_options(CLI::App& verb, MeasureModelsOptions& options) {
    verb.add_option("--rounds", options.setup.rounds,
                    "rounds of each model and size; below 4 there is no verdict")
        ->capture_default_str()
        ->check(CLI::Range(1, 1000));
    verb.add_option("--seconds", options.setup.round.seconds, "length of a round")
        ->capture_default_str()
        ->check(in_range(0.1, 60.0));
    verb.add_option("--models", options.models,
                    "which, in this order; the others are compared with the first; none,none: an A/A run")
        ->capture_default_str();
    verb.add_option("--cpus", options.cpus,
                    "CPU list of the system under test; default: all this program may use")
        ->check(not_empty());
    verb.add_option("--sockbuf", options.setup.round.socket_buffer,
                    "socket buffer size; 0: the kernel's own sizing, at which veth pairs lose packets")
        ->capture_default_str()
        ->check(CLI::Range(0, 1 << 30));
    add_result_options(verb, options.common);
}

void add_load_options(CLI::App& verb, MeasureModelsOptions& options) {
    verb.add_option("--direction", options.direction,
                    "what the system under test does; answer: requests only, see --rr")
        ->capture_default_str()
        ->check(CLI::IsMember({"receive", "transmit", "both", "answer"}));
    auto* length = verb.add_option("--length", options.length, "bytes of one read or write")
                       ->default_str(std::to_string(ttcp::LoadPoint{}.bytes))
                       ->check(CLI::Range(std::size_t{1}, ttcp::most_bytes));
    verb.add_option(
            "--sizes", options.sizes,
            fmt::format("a curve over these bytes of one read or write; alone or all: {}", ttcp::paper_sizes))
        ->expected(0, 1)
        ->default_str("all")
        ->excludes(length);
    verb.add_option(
            "--rr", options.exchanges,
            "also requests and responses, one at a time on each connection: REQUEST[:RESPONSE] bytes, "
            "several between commas; alone: 1")
        ->expected(0, 1)
        ->default_str(one_byte);
}

} // namespace

void add_measure_models(CLI::App& parent, Globals& globals, int& status) {
    auto* verb = parent.add_subcommand(
        "models", "the four affinity models side by side, on veth pairs made for it or on NICs; needs root");
    const auto options = std::make_shared<MeasureModelsOptions>();
    add_testbed_options(*verb, *options);
    add_load_options(*verb, *options);
    add_round_options(*verb, *options);
    verb->callback([&globals, &status, options] { status = run(globals, *options); });
}

} // namespace affinityctl
