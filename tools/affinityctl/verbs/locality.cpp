// SPDX-License-Identifier: Apache-2.0
// affinityctl locality: which programs read where the kernel takes packets in.
#include "locality/locality.hpp"

#include "affinityctl/client/call.hpp"
#include "affinityctl/locality/report.hpp"
#include "affinityctl/locality/watch.hpp"
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/interruptible.hpp"
#include "affinityctl/verbs/option_values.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/verbs/watch_options.hpp"
#include "inventory/process_files.hpp"
#include "machine/reader.hpp"
#include "netdev/reader.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>

#include <fmt/format.h>

namespace affinityctl {

namespace locality = affinityd::locality;

namespace {

using affinityd::host::Root;
using nlohmann::json;
using std::chrono::milliseconds;
using Kind = LocalitySubject::Kind;

struct LocalityOptions : WatchOptions {
    std::string subject;
    bool udp = false;
};

std::string words_of(const LocalitySubject& subject) {
    switch (subject.kind) {
    case Kind::process:
        return fmt::format("process {}", subject.pid);
    case Kind::nic:
        return "interface " + subject.name;
    case Kind::policy:
        return "policy " + subject.name;
    case Kind::unit:
        return "unit " + subject.name;
    case Kind::all:
        break;
    }
    return "all processes";
}

std::expected<LocalitySubject, CallError> find_subject(const LocalityOptions& options, const json& status,
                                                       const Root& root) {
    if (options.subject.empty()) return LocalitySubject{};
    const auto nics = affinityd::netdev::read_nics(root);
    if (!nics) return std::unexpected(CallError{exit_failure, nics.error().to_string()});
    auto subject = read_subject(root, options.subject, *nics, status);
    if (subject) return std::move(*subject);
    return std::unexpected(
        CallError{subject.error().code == ENOTCONN ? exit_no_daemon : exit_failure, subject.error().message});
}

/// The facts that the advice depends on: where all processes are meant, those of the busiest one's name.
void find_facts(const Root& root, const locality::Nearness& near, const locality::ReadCounts& seen,
                const json& status, LocalityReport& report, std::function<bool(int)> is_meant) {
    auto figures = report.figures;
    if (!report.busiest.empty()) {
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
}

/// All that was seen, worked out for this machine as it is now.
LocalityReport report_of(const Root& root, const affinityd::machine::Machine& machine,
                         const locality::Nearness& near, const LocalitySubject& subject,
                         const LocalityWatch& watch, locality::ReadCounts seen, bool wants_others,
                         const json& status) {
    const auto is_meant = [&](int pid) { return watch.is_meant(pid); };
    LocalityReport report{
        .subject = words_of(subject),
        .seen = {},
        .figures = locality::figures_of(seen, near, is_meant),
        .arrivals = locality::arrival_places(seen.counts, machine,
                                             affinityd::inventory::name_space(root, "self", "net"), is_meant),
        .facts = {},
        .busiest = {}};
    if (subject.kind == Kind::all && !report.figures.workers.empty())
        report.busiest = report.figures.workers.front().name;
    find_facts(root, near, seen, status, report, is_meant);
    report.facts.cpus = machine.topology.online.count();
    report.seen = std::move(seen);
    if (wants_others && !report.seen.has_other_protocols)
        report.seen.notes.emplace_back("TCP only: this kernel (before 6.3) has no tracepoint for UDP.");
    std::erase_if(report.seen.counts, [&](const locality::ReadCount& count) { return !is_meant(count.pid); });
    return report;
}

Outcome run_locality(const LocalityOptions& options, const Globals& globals) {
    if (const auto live = check_is_live(globals); !live) return std::unexpected(live.error());
    const auto time = check_watch_options(options, globals, "locality looks at the sockets of all processes");
    if (!time) return std::unexpected(time.error());
    const auto root = Root::open();
    if (!root) return failed(root.error());
    const auto status = status_if_any(globals);
    const auto subject = find_subject(options, status, *root);
    if (!subject) return std::unexpected(subject.error());
    LocalityWatch watch(*root, *subject, [&] { return status_if_any(globals); });
    affinityd::Result<locality::ReadCounts> seen;
    {
        const Interruptible signals;
        ProgressLine progress("watching");
        if (const auto begun = watch.begin(options.udp); !begun) return failed(begun.error());
        keep_few_capabilities();
        watch.run(*time, [&](milliseconds left) {
            progress.go_on();
            return signals.wait(left);
        });
        seen = watch.take();
    }
    if (!seen) return failed(seen.error());
    const auto machine = affinityd::machine::read_machine(*root);
    if (!machine) return failed(machine.error());
    const locality::Nearness near(machine->topology);
    auto document = locality_document(
        report_of(*root, *machine, near, *subject, watch, std::move(*seen), options.udp, status), near);
    document.picture = options.svg;
    return document;
}

} // namespace

void add_locality(CLI::App& app, Globals& globals, int& status) {
    const auto options = std::make_shared<LocalityOptions>();
    auto* verb = add_verb(app,
                          {.name = "locality",
                           .summary = "CPUs where packets arrive, and CPUs where they are read; needs root",
                           .example = "affinityctl locality nginx --for 30s",
                           .answer = locality_answer},
                          globals, status, [&globals, options] { return run_locality(*options, globals); });
    verb->add_option("SUBJECT", options->subject,
                     "policy, PID, systemd unit or interface; without: all processes")
        ->check(not_empty()); // $(pidof nginx) of one that does not run is not all
    add_watch_options(*verb, *options, "the heat map");
    verb->add_flag("--udp", options->udp,
                   "count what is not TCP, too (Linux 6.3); costs a busy server some percent");
}

} // namespace affinityctl
