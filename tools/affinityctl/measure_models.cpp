// SPDX-License-Identifier: Apache-2.0
#include "measure_models.hpp"

#include "host/root.hpp"
#include "host/scheduler.hpp"
#include "measure/models_run.hpp"
#include "models_chart.hpp"
#include "say.hpp"
#include "svg.hpp"
#include "table.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace affinityctl {

namespace {

using namespace affinityd;

struct Options {
    unsigned connections = 8;
    std::string models = "none,irq,process,full";
    std::string cpus;
    std::string direction = "receive";
    std::string svg;
    std::string nics;
    std::vector<measure::NicPair> pairs;
    measure::ModelsSetup setup;
};

/// From here on SIGINT, SIGTERM and SIGHUP come as something to read: the experiment then ends in good order.
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

Result<void> read_pairs(const std::string& text, std::vector<measure::NicPair>& pairs) {
    if (text.empty()) return {};
    for (const auto& pair : CLI::detail::split(text, ',')) {
        const auto names = CLI::detail::split(pair, ':');
        if (names.size() != 2 || names[0].empty() || names[1].empty())
            return fail("expected pairs of NICs as in eth1:eth2,eth3:eth4", text);
        pairs.emplace_back(names[0], names[1]);
    }
    return {};
}

Result<void> complete(Options& options) {
    if (auto done = read_pairs(options.nics, options.pairs); !done) return done;
    options.setup.models.clear();
    for (const auto& name : CLI::detail::split(options.models, ',')) {
        const auto model = measure::parse_model(name);
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

std::string interval_text(const std::optional<measure::Interval>& interval, double unit, int digits) {
    if (!interval) return "-";
    return fmt::format("{:.{}f} ({:.{}f} to {:.{}f})", interval->estimate / unit, digits,
                       interval->low / unit, digits, interval->high / unit, digits);
}

std::string rate_text(const std::optional<double>& value) {
    return value ? fmt::format("{:.0f}", *value) : "-";
}

/// Interrupts of the NICs: a row for each queue's line, a column for each CPU where any came.
void show_interrupts(const measure::ModelSummary& summary, const std::string& label, bool color) {
    CpuSet cpus;
    std::map<unsigned, std::map<unsigned, std::uint64_t>> counts;
    std::map<unsigned, std::string> names;
    for (const auto& line : summary.lines) {
        cpus.insert(line.cpu);
        counts[line.irq][line.cpu] += line.count;
        names[line.irq] = line.label;
    }
    if (counts.empty()) return;
    std::vector<std::string> head{"IRQ", "QUEUE"};
    for (const unsigned cpu : cpus)
        head.push_back(fmt::format("CPU{}", cpu));
    Table table(head);
    for (const auto& [irq, by_cpu] : counts) {
        std::vector<std::string> row{std::to_string(irq), printable(names[irq])};
        for (const unsigned cpu : cpus)
            row.push_back(by_cpu.contains(cpu) ? std::to_string(by_cpu.at(cpu)) : "-");
        table.add(row);
    }
    fmt::print("\nInterrupts of the NICs, model {}:\n{}", label, table.to_string(color));
}

/// What each CPU did, per model.
void show_cpus(const std::vector<measure::ModelSummary>& summaries, const std::vector<std::string>& labels,
               bool color) {
    Table table({"MODEL", "CPU", "USER S", "SYSTEM S", "IRQ S", "SOFTIRQ S", "INTERRUPTS"});
    for (std::size_t i = 0; i < summaries.size(); ++i)
        for (const auto& cpu : summaries[i].cpus)
            table.add({labels[i], std::to_string(cpu.cpu), fmt::format("{:.2f}", cpu.user_seconds),
                       fmt::format("{:.2f}", cpu.system_seconds), fmt::format("{:.2f}", cpu.irq_seconds),
                       fmt::format("{:.2f}", cpu.softirq_seconds), std::to_string(cpu.interrupts)});
    fmt::print("\nAll that ran on each CPU meanwhile, over all rounds:\n{}", table.to_string(color));
}

void show(const measure::ModelsReport& report, bool color) {
    const auto summaries = measure::summarize(report.results);
    const auto labels = labels_of(summaries);
    fmt::print("{} connections, {}, {} rounds of {:g} s for each model on CPUs {}, in {:.0f} s\n{}\n\n",
               report.connections, report.direction, summaries.front().rounds, report.round_seconds,
               report.cpus.to_list(), report.seconds, report.setup);
    Table table({"MODEL", "GBIT/S", "GAIN", "GHZ/GBPS", "COST", "BUSY CPUS", "SWITCHES/S", "MIGRATIONS/S",
                 "RETRANSMITS/S"});
    for (std::size_t i = 0; i < summaries.size(); ++i) {
        const auto& summary = summaries[i];
        table.add({labels[i], interval_text(summary.bits_per_second, 1e9, 2),
                   i == 0 ? "-" : measure::describe(summary.gain),
                   interval_text(summary.cycles_per_bit, 1, 2),
                   i == 0 ? "-" : measure::describe(summary.cost), fmt::format("{:.2f}", summary.busy_cpus),
                   fmt::format("{:.0f}", summary.switches_per_second),
                   rate_text(summary.migrations_per_second), rate_text(summary.retransmits_per_second)});
    }
    fmt::print("{}\n{}\n", table.to_string(color), bars(summaries, 40));
    fmt::print("Harmonic means with 95 % intervals (bootstrap). Gain and cost against {}; their intervals "
               "hold all together. Cost by {}.\n",
               labels.front(), report.cycles_source);
    show_cpus(summaries, labels, color);
    for (std::size_t i = 0; i < summaries.size(); ++i)
        show_interrupts(summaries[i], labels[i], color);
    if (report.outcome != measure::Outcome::done)
        fmt::print("\nnot finished: {}: {}\n", measure::to_string(report.outcome), report.reason);
}

int run(const Globals& globals, Options options) {
    if (auto done = complete(options); !done) {
        complain({exit_usage, done.error().to_string()});
        return exit_usage;
    }
    const auto stop = catch_signals();
    const auto root = host::Root::open();
    if (!stop) return complain({exit_failure, stop.error().to_string()});
    if (!root) return complain({exit_failure, root.error().to_string()});
    options.setup.round.stop = stop->get();
    const bool interactive = ::isatty(STDERR_FILENO) == 1;
    if (interactive)
        options.setup.progress = [](std::size_t done, std::size_t all) {
            fmt::print(stderr, "\rround {} of {} ", done, all);
        };
    measure::ModelsReport report;
    {
        const auto bed = options.pairs.empty() ? measure::make_veth_bed(*root, options.connections)
                                               : measure::make_nic_bed(*root, options.pairs);
        if (!bed) return complain({exit_failure, bed.error().to_string()});
        report = measure::run_models(*root, *bed, options.setup);
    }
    if (interactive) fmt::print(stderr, "\r\033[K");
    if (globals.json)
        fmt::print("{}\n", measure::to_json(report));
    else
        show(report, globals.color);
    if (!options.svg.empty())
        if (const int code = write_svg(options.svg, models_svg(report, measure::summarize(report.results)));
            code != exit_ok)
            return code;
    return report.outcome == measure::Outcome::done ? exit_ok : exit_failure;
}

} // namespace

void add_measure_models(CLI::App& measure, Globals& globals, int& status) {
    auto* verb = measure.add_subcommand(
        "models", "the four affinity models side by side, on veth pairs of its own or on NICs; needs root");
    const auto options = std::make_shared<Options>();
    auto& setup = options->setup;
    verb->add_option("--connections", options->connections, "connections, each over an interface of its own")
        ->capture_default_str()
        ->check(CLI::Range(1U, affinityd::measure::most_connections));
    verb->add_option("--nics", options->nics,
                     "pairs of NICs with a wire between them, as eth1:eth2,eth3:eth4, none of them in use: a "
                     "connection into "
                     "each; they are put back in the end")
        ->excludes("--connections");
    verb->add_option("--rounds", setup.rounds, "rounds of each model; below 4 there is no verdict")
        ->capture_default_str()
        ->check(CLI::Range(1, 1000));
    verb->add_option("--seconds", setup.round.seconds, "length of a round")
        ->capture_default_str()
        ->check(CLI::Range(0.1, 60.0));
    verb->add_option(
            "--models", options->models,
            "which, in this order; the first is what others are compared with; none,none: an A/A run")
        ->capture_default_str();
    verb->add_option("--cpus", options->cpus,
                     "CPU list of the system under test; default: all this program may use");
    verb->add_option("--direction", options->direction, "what the system under test does")
        ->capture_default_str()
        ->check(CLI::IsMember({"receive", "transmit"}));
    verb->add_option("--length", setup.round.buffer_bytes, "bytes of one read or write")
        ->capture_default_str()
        ->check(CLI::Range(1, 64 << 20));
    verb->add_option("--sockbuf", setup.round.socket_buffer,
                     "socket buffer size; 0: the kernel's own sizing, at which veth pairs lose packets")
        ->capture_default_str()
        ->check(CLI::Range(0, 1 << 30));
    verb->add_option("--svg", options->svg, "also draw it into this file");
    verb->callback([&globals, &status, options] { status = run(globals, *options); });
}

} // namespace affinityctl
