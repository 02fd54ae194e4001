// SPDX-License-Identifier: Apache-2.0
// affinityctl locality, sharers, intruders: programs and CPUs are watched in the kernel for a while.
#include "affinityctl/intruders/report.hpp"
#include "affinityctl/intruders/watch.hpp"
#include "affinityctl/locality/report.hpp"
#include "affinityctl/locality/watch.hpp"
#include "affinityctl/offline/cpu_expr.hpp"
#include "affinityctl/offline/still_machine.hpp"
#include "affinityctl/sharers/report.hpp"
#include "affinityctl/sharers/watch.hpp"
#include "affinityctl/verbs/policy_set.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/text.hpp"
#include "host/root.hpp"
#include "host/scheduler.hpp"
#include "host/signals.hpp"
#include "inventory/process_files.hpp"
#include "locality/locality.hpp"
#include "machine/reader.hpp"
#include "netdev/reader.hpp"
#include "policy/cpu_expr.hpp"
#include "policy/reader.hpp"
#include "topology/reader.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace affinityctl {

namespace {

namespace locality = affinityd::locality;
using affinityd::host::Root;
using nlohmann::json;
using std::chrono::milliseconds;
using Kind = LocalitySubject::Kind;

struct WatchOptions {
    std::string subject; ///< "": all processes
    milliseconds time{10'000};
    std::string svg; ///< "": none; "-": standard output
    bool udp = false;
};

/// `picture`: what --svg draws: "the heat map".
void add_watch_options(CLI::App& verb, WatchOptions& options, const std::string& picture) {
    add_time(verb, "--for", options.time, milliseconds(100), "how long to watch")->default_str("10s");
    add_picture(verb, options.svg, "also draw " + picture + " into this file");
}

/// `why_root`: "locality looks at the sockets of all processes".
void check_watch_options(const WatchOptions& options, const Globals& globals, const std::string& why_root) {
    need(check_is_live(globals));
    need(check_picture(globals, options.svg));
    if (::geteuid() != 0) throw CallError{exit_failure, why_root + ": run it as root"};
}

/// Gives up, for good, all capabilities(7) but those that watching needs once it has begun: reading BPF maps,
/// looking at processes and their sockets, and writing the picture where the user says. Programs that are
/// started get no more than these either.
void keep_few_capabilities() {
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> present{};
    if (::syscall(SYS_capget, &header, present.data()) != 0) return;
    std::uint64_t kept = 0;
    for (const unsigned capability : {CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_BPF})
        kept |= std::uint64_t{1} << capability;
    for (std::size_t word = 0; word < present.size(); ++word) {
        present[word].permitted &= static_cast<std::uint32_t>(kept >> 32 * word);
        present[word].effective = present[word].permitted;
        present[word].inheritable = 0;
    }
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    ::syscall(SYS_capset, &header, present.data());
}

/// While it is there, a line tells that this program watches, and the signals by which people end a program
/// end a wait instead.
class Vigil {
  public:
    Vigil() { ::pthread_sigmask(SIG_BLOCK, &signals_, &before_); }
    Vigil(const Vigil&) = delete;
    Vigil& operator=(const Vigil&) = delete;
    ~Vigil() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    /// True: a signal came.
    bool wait(milliseconds time) {
        line_.go_on();
        const timespec left{time.count() / 1000, time.count() % 1000 * 1'000'000};
        return ::sigtimedwait(&signals_, nullptr, &left) > 0;
    }

  private:
    const sigset_t signals_ = affinityd::host::stop_signals();
    sigset_t before_{};
    ProgressLine line_{"watching"};
};

std::string words_of(const LocalitySubject& subject) {
    constexpr std::array kinds{"all processes", "process", "interface", "policy", "unit"}; // as in Kind
    const std::string kind = kinds.at(static_cast<std::size_t>(subject.kind));
    if (subject.kind == Kind::process) return fmt::format("{} {}", kind, subject.pid);
    return subject.kind == Kind::all ? kind : kind + " " + subject.name;
}

LocalitySubject find_subject(const std::string& word, const json& status, const Root& root) {
    if (word.empty()) return {};
    const auto nics = need(affinityd::netdev::read_nics(root));
    auto subject = read_subject(root, word, nics, status);
    if (subject) return std::move(*subject);
    throw CallError{subject.error().code == ENOTCONN ? exit_no_daemon : exit_failure,
                    subject.error().message};
}

/// All that was seen, worked out for this machine as it is now. The facts that the advice depends on are,
/// where all processes are meant, those of the busiest one's name.
LocalityReport report_of(const Root& root, const affinityd::machine::Machine& machine,
                         const locality::Nearness& near, const LocalitySubject& subject,
                         const LocalityWatch& watch, locality::ReadCounts seen, const json& status) {
    std::function<bool(int)> is_meant = [&](int pid) { return watch.is_meant(pid); };
    LocalityReport report{
        .subject = words_of(subject),
        .seen = {},
        .figures = locality::figures_of(seen, near, is_meant),
        .arrivals = locality::arrival_places(seen.counts, machine,
                                             affinityd::inventory::name_space(root, "self", "net"), is_meant),
        .facts = {},
        .busiest = {}};
    auto figures = report.figures;
    if (subject.kind == Kind::all && !figures.workers.empty()) {
        report.busiest = figures.workers.front().name;
        is_meant = [&](int pid) {
            const auto found = seen.names.find(pid);
            return found != seen.names.end() && found->second == report.busiest;
        };
        figures = locality::figures_of(seen, near, is_meant);
    }
    report.facts = facts_of(figures, seen.counts, is_meant);
    std::vector<int> pids;
    for (const auto& worker : figures.workers)
        pids.push_back(worker.pid);
    report.facts.listeners = listeners_at_one_port(root, pids);
    report.facts.steered_by = steering_policy(status, pids);
    report.facts.cpus = machine.topology.online.count();
    std::erase_if(seen.counts, [&](const locality::ReadCount& count) { return !watch.is_meant(count.pid); });
    report.seen = std::move(seen);
    return report;
}

Outcome run_locality(const WatchOptions& options, const Globals& globals) {
    check_watch_options(options, globals, "locality looks at the sockets of all processes");
    const auto root = need(Root::open());
    const auto status = status_if_any(globals);
    const auto subject = find_subject(options.subject, status, root);
    LocalityWatch watch(root, subject, [&] { return status_if_any(globals); });
    locality::ReadCounts seen;
    {
        Vigil vigil;
        need(watch.begin(options.udp));
        keep_few_capabilities();
        watch.run(options.time, [&](milliseconds left) { return vigil.wait(left); });
        seen = need(watch.take());
    }
    const auto machine = need(affinityd::machine::read_machine(root));
    const locality::Nearness near(machine.topology);
    if (options.udp && !seen.has_other_protocols)
        seen.notes.emplace_back("TCP only: this kernel (before 6.3) has no tracepoint for UDP.");
    auto document =
        locality_document(report_of(root, machine, near, subject, watch, std::move(seen), status), near);
    document.picture = options.svg;
    return document;
}

/// The findings until then, if the user or the process ends it early.
affinityd::Result<Wakes> watch_wakes(WakeWatch& watch, milliseconds time) {
    Vigil vigil;
    if (auto begun = watch.begin(); !begun) return std::unexpected(begun.error());
    keep_few_capabilities();
    watch.run(time, [&](milliseconds left) { return vigil.wait(left); });
    return watch.take();
}

Outcome run_sharers(const WatchOptions& options, const Globals& globals) {
    need(check_is_live(globals));
    const auto pid = affinityd::parse_number<int>(options.subject);
    if (!pid || *pid < 1) return failed(exit_usage, options.subject + ": expected a process or thread id");
    check_watch_options(options, globals, "sharers counts in the kernel");
    const auto root = need(Root::open());
    auto watch = need(WakeWatch::of(root, *pid));
    auto wakes = watch_wakes(watch, options.time);
    if (!wakes)
        return failed(
            affinityd::Error{"sharers cannot count: " + wakes.error().message, {}, wakes.error().code});
    const auto topology = need(affinityd::topology::read_topology(root));
    auto document = sharers_document(watch.process(), *wakes, watch.has_ended(), topology);
    document.picture = options.svg;
    return document;
}

struct IntruderOptions {
    std::string subject; ///< "": isolated and exclusive CPUs
    milliseconds time{10'000};
    double over_us = 0; ///< 0: no limit
    std::string since;  ///< folder of an earlier recording, with which the machine is compared; "": none
    std::string svg;    ///< "": none; "-": standard output
};

/// "20us", "1.5ms", "1s" as microseconds.
CLI::Validator short_time() {
    return {[](std::string& text) {
                char* end = nullptr;
                const double number = std::strtod(text.c_str(), &end);
                const std::string unit = end;
                const double factor = unit == "us" ? 1 : unit == "ms" ? 1e3 : unit == "s" ? 1e6 : 0;
                if (!(number * factor > 0 && number * factor <= 3.6e9))
                    return std::string("expected a time as 20us or 1ms, of at most an hour");
                text = fmt::format("{}", number * factor);
                return std::string();
            },
            ""};
}

/// The CPUs and processes of a policy join the facts; none if the daemon has none of the name.
void add_policy(const json& status, const std::string& name, IntruderFacts& facts) {
    for (const auto& policy : list(status, "policies"))
        if (text(policy, "name") == name) facts.cpus |= cpus(policy, "cpus");
    const auto pids = processes_under(status, name).value_or(std::vector<int>());
    facts.own.insert(pids.begin(), pids.end());
}

/// The CPUs of the daemon's exclusive policies and of isolation, and whose they are.
void find_quiet_cpus(const Globals& globals, const json& status,
                     const affinityd::topology::Topology& topology, IntruderFacts& facts) {
    namespace policy = affinityd::policy;
    facts.subject = "isolated and exclusive CPUs";
    if (status.is_object()) {
        const auto files =
            policy::read_folders(usual_folders(globals)).value_or(std::vector<policy::Document>());
        const auto read = policy::read_policies(files);
        for (const auto& one : read.set.policies)
            if (one.exclusive != policy::Exclusive::no) add_policy(status, one.name, facts);
    }
    facts.guessed = (topology.isolated | topology.nohz_full) - facts.cpus;
    facts.cpus |= facts.guessed;
    if (facts.cpus.empty())
        throw CallError{exit_failure,
                        "no CPU is isolated, and no policy is exclusive: name a policy, a unit or CPUs"};
}

/// A policy of the daemon's, a unit, or an expression.
void find_named_cpus(const std::string& word, const json& status, const Root& root,
                     affinityd::machine::Machine& machine, IntruderFacts& facts) {
    if (processes_under(status, word)) {
        facts.subject = "policy " + word;
        add_policy(status, word, facts);
    } else if (word.find('.') != std::string::npos) {
        facts.subject = "unit " + word;
        const auto pids = need(processes_of_unit(root, word));
        if (pids.empty()) throw CallError{exit_failure, "no process is in a unit " + word};
        facts.own.insert(pids.begin(), pids.end());
        for (const int pid : pids)
            facts.cpus |= affinityd::inventory::read_mask(root, pid, pid);
    } else {
        const auto expr = affinityd::policy::parse_cpu_expr(word);
        const auto found = expr ? evaluate_cpu_expr(*expr, {}, machine, root) : std::unexpected(expr.error());
        if (!found)
            throw CallError{exit_failure,
                            fmt::format("{} is no policy of a running daemon, no unit and no CPUs: {}", word,
                                        found.error().message)};
        facts.cpus = facts.guessed = *found;
        facts.subject = "CPUs " + found->to_list();
    }
    facts.cpus &= machine.topology.online;
    if (facts.cpus.empty()) throw CallError{exit_failure, facts.subject + " has no CPU that is online"};
}

void add_lines(const Root& root, const json& status, IntruderFacts& facts) {
    for (const auto& line : need(affinityd::machine::read_irqs(root)).irqs)
        facts.lines[line.number] = {fmt::format("{}", fmt::join(line.actions, ", ")), "",
                                    line.fixed || !line.writable};
    for (const auto& queue : list(status, "queues"))
        if (text(queue, "kind") == "irq" && !queue.value("kept_off", false))
            facts.lines[static_cast<unsigned>(count(queue, "irq"))].policy = text(queue, "policy");
}

/// Watches the CPUs of the facts, or compares the counters of two moments.
Intrusions watch_intruders(const IntruderOptions& options, const Root& root, const affinityd::CpuSet& cpus) {
    const auto before = need(Root::open(options.since.empty() ? "/" : options.since));
    auto events = options.since.empty()
                      ? IntruderWatch::by_events(root, cpus)
                      : std::unexpected(affinityd::Error{"recordings have counters only", {}, 0});
    if (!events && options.over_us > 0)
        throw CallError{exit_failure, "--over cannot be judged without BPF: " + events.error().to_string()};
    const auto& first = options.since.empty() ? root : before;
    const auto watch = events ? std::move(*events) : IntruderWatch::by_counters(first, root, cpus);
    const auto times = first.proc().text("stat").value_or("");
    watch->begin();
    if (options.since.empty()) {
        Vigil vigil;
        keep_few_capabilities();
        vigil.wait(options.time);
    }
    auto seen = need(watch->take());
    seen.busy = busy_between(times, root.proc().text("stat").value_or(""));
    if (!seen.has_lengths)
        seen.notes.push_back(
            fmt::format("Lengths, senders and reasons are not known: {}. Counters tell only how "
                        "often, and of threads where they ran last.",
                        events.error().message));
    return seen;
}

Outcome run_intruders(const IntruderOptions& options, const Globals& globals) {
    if (options.since.empty()) need(check_is_live(globals));
    need(check_picture(globals, options.svg));
    const auto root = need(Root::open(globals.root));
    affinityd::machine::Machine machine{need(affinityd::topology::read_topology(root)), {}, {}};
    const auto& topology = machine.topology;
    json status;
    const auto find = [&](IntruderFacts& into) {
        if (!globals.is_recorded()) status = status_if_any(globals);
        if (options.subject.empty()) return find_quiet_cpus(globals, status, topology, into);
        find_named_cpus(options.subject, status, root, machine, into);
    };
    IntruderFacts facts, later;
    find(facts);
    facts.nohz_full = topology.nohz_full;
    for (const unsigned cpu : facts.cpus)
        facts.siblings[cpu] = topology.core_of(cpu) - affinityd::CpuSet{cpu};
    // Elsewhere, so that it is no intruder itself, where there is an elsewhere.
    std::ignore = affinityd::host::set_affinity(0, topology.online - facts.cpus);
    const auto seen = watch_intruders(options, root, facts.cpus);
    try {
        find(later);
        facts.own.merge(later.own); // those that came meanwhile
    } catch (const CallError&) {    // a unit that has ended, or a daemon
    }
    add_lines(root, status, facts);
    std::optional<std::chrono::nanoseconds> over;
    if (options.over_us > 0)
        over = std::chrono::nanoseconds(static_cast<std::int64_t>(options.over_us * 1e3));
    auto document = intruders_document(seen, facts, over);
    document.picture = options.svg;
    return document;
}

} // namespace

void add_locality(CLI::App& app, Globals& globals, int& status) {
    const auto [verb, options] =
        add_verb(app,
                 {.name = "locality",
                  .summary = "CPUs where packets arrive and where they are read; needs root",
                  .example = "affinityctl locality nginx --for 30s",
                  .answer = locality_answer},
                 globals, status, run_locality);
    verb->add_option("SUBJECT", options->subject,
                     "policy, PID, systemd unit or interface; without: all processes")
        ->check(not_empty()); // $(pidof nginx) of one that does not run is not all
    add_watch_options(*verb, *options, "the heat map");
    verb->add_flag("--udp", options->udp,
                   "count what is not TCP, too (Linux 6.3); costs a busy server some percent");
}

void add_sharers(CLI::App& app, Globals& globals, int& status) {
    const auto [verb, options] =
        add_verb(app,
                 {.name = "sharers",
                  .summary = "threads of a program that wake each other, and rules; needs root",
                  .example = "affinityctl sharers $(pidof redis-server) --for 5s",
                  .answer = sharers_answer},
                 globals, status, run_sharers);
    verb->add_option("PID", options->subject, "the program, by a process or thread id")
        ->type_name("")
        ->required();
    add_watch_options(*verb, *options, "which thread wakes which");
}

void add_intruders(CLI::App& app, Globals& globals, int& status) {
    const auto [verb, options] =
        add_verb(app,
                 {.name = "intruders",
                  .summary = "interruptions of programs on their CPUs: sources, lengths, mends",
                  .example = "affinityctl intruders 2-3 --for 30s --over 20us",
                  .answer = intruders_answer},
                 globals, status, run_intruders);
    verb->add_option("WHERE", options->subject,
                     "policy, systemd unit or CPUs (0-3,8); without: isolated and exclusive CPUs")
        ->check(not_empty());
    add_time(*verb, "--for", options->time, milliseconds(100), "how long to watch")->default_str("10s");
    add_picture(*verb, options->svg, "also draw the CPUs, sources and lengths into this file");
    verb->add_option("--over", options->over_us,
                     "exit with 3 if an interruption was longer than this, as 20us")
        ->type_name("TIME")
        ->transform(short_time());
    verb->add_option(
            "--since", options->since,
            "do not watch: compare the machine, or that of --root, with this earlier recording of it")
        ->type_name("FOLDER")
        ->check(not_empty());
}

} // namespace affinityctl
