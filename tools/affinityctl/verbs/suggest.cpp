// SPDX-License-Identifier: Apache-2.0
// affinityctl suggest: watches the servers of this machine for a while, or takes a recorded one, and proposes
// a policy for each that is worth one.
#include "affinityctl/offline/still_machine.hpp"
#include "affinityctl/present/document.hpp"
#include "affinityctl/reading/servers.hpp"
#include "affinityctl/survey/suggestion.hpp"
#include "affinityctl/verbs/policy_set.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/text.hpp"
#include "host/root.hpp"
#include "policy/policy.hpp"
#include "policy/reader.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace affinityctl {

namespace {

using affinityd::counted;
using affinityd::host::Root;
using nlohmann::json;
using std::chrono::milliseconds;

// clang-format off
constexpr Field suggested_line_fields[] = {
    {"key", "", "text", "of the policy"},
    {"value", "", "text", "as the file has it"},
    {"reason", "", "text", "with the figures seen"},
};
constexpr Field proposal_fields[] = {
    {"server", "", "text", "the unit, or the program"},
    {"processes", "", "count[]", "pids"},
    {"busy", "", "number", "CPUs that it kept busy"},
    {"file", "", "text", "a name for the file"},
    {"text", "", "text", "the whole file"},
    {"lines", "", "object[]", "its keys", suggested_line_fields},
    {"advice", "", "text[]", "for the settings of the server and of other programs"},
    {"outcome", "", "text?", "with --write: saved, kept or unchanged"},
};
constexpr Field left_fields[] = {
    {"server", "SERVER", "text", "the unit, or the program"},
    {"processes", "", "count[]", "pids"},
    {"busy", "CPUS", "number", "CPUs that it kept busy"},
    {"idle", "", "flag", "it did next to nothing"},
    {"why", "NOT WORTH A POLICY, BECAUSE", "prose", "the reason"},
};
constexpr Field suggest_answer[] = {
    {"proposals", "", "object[]", "a policy for each server that is worth one", proposal_fields},
    {"left", "", "object[]", "the other servers", left_fields},
    {"notes", "", "text[]", "parts that are not known"},
};
// clang-format on

struct SuggestOptions {
    std::string subject; ///< "": all
    milliseconds time{10'000};
    bool all = false, write = false;
};

/// The unit of this machine that has such an alias, which is a link ("redis"), or itself.
std::string unit_called(const std::string& name) {
    std::error_code none;
    const auto link = std::filesystem::read_symlink("/etc/systemd/system/" + name + ".service", none);
    return none || !link.has_extension() ? name + ".service" : link.filename().string(); // or /dev/null
}

/// `unit`: of that name. A package may have a unit for each instance ("postgresql").
bool is_named_by(const survey::Server& server, const std::string& name, const std::string& unit) {
    return server.name == name || server.unit == unit || server.unit.starts_with(name + "@") ||
           server.exe == name ||
           std::ranges::any_of(server.processes, [&](const survey::ServerProcess& process) {
               return process.comm == name || std::to_string(process.pid) == name;
           });
}

json lines_of(const survey::Suggestion& suggestion) {
    auto lines = json::array();
    for (const auto& line : suggestion.lines)
        lines.push_back(record(suggested_line_fields, {line.key, line.value, line.reason}));
    return lines;
}

Document suggest_document(const std::vector<survey::Suggestion>& suggestions,
                          const std::vector<std::string>& notes, const SuggestOptions& options,
                          const Globals& globals) {
    Document document;
    auto proposals = json::array(), left = json::array(), shown = json::array();
    std::size_t idle = 0;
    for (const auto& one : suggestions) {
        const auto busy = std::round(one.busy * 1000) / 1000;
        if (one.file.empty()) {
            left.push_back(record(left_fields, {one.server, one.pids, busy, one.is_idle, one.why_not}));
            const bool is_shown = !one.is_idle || options.all || !options.subject.empty();
            if (is_shown) shown.push_back(left.back());
            idle += !is_shown;
            continue;
        }
        const auto text = survey::file_text(one);
        json outcome;
        if (options.write) {
            auto edited = need(edit_policy(globals, one.file, text));
            outcome = edited.value["outcome"];
            std::ranges::move(edited.blocks, std::back_inserter(document.blocks));
        } else {
            document.heading("# " + one.file).gap = !proposals.empty();
            document.verbatim(text);
        }
        proposals.push_back(record(proposal_fields, {one.server, one.pids, busy, one.file, text,
                                                     lines_of(one), one.advice, std::move(outcome)}));
    }
    if (proposals.empty()) document.line("nothing here is worth a policy");
    if (!shown.empty()) document.add(Document::Table{left_fields, shown}).gap = true;
    if (idle > 0)
        document.paragraph(fmt::format("{} did next to nothing (--all lists them)",
                                       counted(idle, "other program", "other programs")));
    for (const auto& note : notes) // a proposal may be saved as it is printed
        document.complaints.push_back("affinityctl: " + note);
    document.value = record(suggest_answer, {std::move(proposals), std::move(left), notes});
    return document;
}

Outcome run_suggest(const SuggestOptions& options, const Globals& globals) {
    const auto root = need(Root::open(globals.root));
    affinityd::policy::PolicySet policies;
    std::set<std::string, std::less<>> taken;
    Watched watched;
    if (options.write) need(check_is_live(globals));
    if (root.is_live()) {
        if (::geteuid() != 0)
            return failed(exit_failure, "suggest looks at the sockets of all processes: run it as root");
        policies = read_policy_set({}, globals);
        for (const auto& file : need(affinityd::policy::list_folders(usual_folders(globals))))
            taken.emplace(affinityd::policy::policy_name(file));
        affinityd::policy::resolve_programs(policies);
        watched = watch_servers(root, options.time);
    }
    const auto still = need(StillMachine::read(policies, globals.root, latencies_for(globals, {})));
    const auto unit = root.is_live() ? unit_called(options.subject) : options.subject + ".service";
    auto [seen, notes] =
        read_servers(*still, root, std::move(watched), std::move(taken), [&](const survey::Server& server) {
            return options.subject.empty() || is_named_by(server, options.subject, unit);
        });
    if (seen.servers.empty() && !options.subject.empty())
        return failed(exit_failure, "there is no unit, process or program " + options.subject);
    for (const auto& part : still->missing_parts())
        notes.push_back("not recorded: " + part);
    return suggest_document(survey::suggest(seen), notes, options, globals);
}

} // namespace

void add_suggest(CLI::App& app, Globals& globals, int& status) {
    const auto [verb, options] =
        add_verb(app,
                 {.name = "suggest",
                  .summary = "a policy for each server that is worth one; needs no daemon",
                  .example = "affinityctl suggest nginx --for 30s",
                  .answer = suggest_answer},
                 globals, status, run_suggest);
    verb->add_option("SERVER", options->subject, "a unit, a PID, or the name of a program (default: all)")
        ->check(not_empty());
    verb->add_flag("--all", options->all, "list all that is not worth a policy, too");
    add_time(*verb, "--for", options->time, milliseconds(100), "how long to watch")->default_str("10s");
    verb->add_flag("--write", options->write, "ask of each whether it is to be installed");
}

} // namespace affinityctl
