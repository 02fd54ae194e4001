// SPDX-License-Identifier: Apache-2.0
// affinityctl doctor: finds all that works against affinity on this machine or a recorded one, and its mend.
#include "affinityctl/survey/doctor.hpp"

#include "affinityctl/client/answers.hpp"
#include "affinityctl/offline/still_machine.hpp"
#include "affinityctl/present/document.hpp"
#include "affinityctl/reading/machine.hpp"
#include "affinityctl/verbs/policy_set.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/text.hpp"
#include "host/root.hpp"
#include "policy/reader.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityctl {

namespace {

using affinityd::host::Root;
using nlohmann::json;
namespace status = affinityd::status;

// clang-format off
constexpr Field finding_fields[] = {
    {"id", "", "text", "the kind of finding: the same in all versions"},
    {"severity", "", "text", "warning, or note"},
    {"sentence", "", "text", "the subject, and what was seen of it"},
    {"mend", "", "text", "the command, or the line of a policy, that mends it"},
};
constexpr Field doctor_answer[] = {
    {"ok", "", "flag", "there are no warnings"},
    {"warnings", "", "count", "warnings"},
    {"notes", "", "count", "notes"},
    {"findings", "", "object[]", "warnings, then notes", finding_fields},
    {"unread", "", "text[]", "parts of the machine that the recording lacks, in which nothing is found"},
};
// clang-format on

/// All that `status` tells, in its words: only those that an administrator has acknowledged are notes.
void add_daemons(const json& status, std::vector<survey::Finding>& into) {
    for (const char* key : {"problems", "notes"})
        for (const auto& problem : list(status, key)) {
            const auto severity = text(problem, "severity");
            survey::Finding found{{"", "", sentence_of(problem), text(problem, "hint")},
                                  text(problem, "kind")};
            if (severity != "attention") found.severity = status::Severity::note;
            const bool is_told = std::ranges::any_of(into, [&](const auto& known) {
                return known.id == found.id && known.problem == found.problem;
            });
            if (!is_told && severity != "settling") into.push_back(std::move(found));
        }
    std::ranges::stable_sort(into, std::ranges::greater{}, &survey::Finding::severity);
}

Document doctor_document(const std::vector<survey::Finding>& findings, std::vector<std::string> unread) {
    Document document;
    json found = json::array();
    const auto warnings = static_cast<std::size_t>(std::ranges::count_if(
        findings, [](const auto& finding) { return finding.severity != status::Severity::note; }));
    const auto notes = findings.size() - warnings;
    if (findings.empty())
        document.add(Document::Line{{{"nothing works against affinity here", Document::Look::good}}});
    else
        document.add(Document::Line{{{fmt::format("{}, {}", affinityd::counted(warnings, "warning"),
                                                  affinityd::counted(notes, "note")),
                                      warnings > 0 ? Document::Look::bad : Document::Look::mark}}});
    for (const auto& finding : findings) {
        const char* severity = finding.severity == status::Severity::note ? "note" : "warning";
        const auto& [policy, subject, sentence, mend] = finding.problem;
        found.push_back(record(finding_fields, {finding.id, severity, sentence, mend}));
        document.add(Document::Problem{fmt::format("{}: {} [{}]", severity, sentence, finding.id), mend});
    }
    if (!unread.empty())
        document.paragraph(
            fmt::format("not recorded, and nothing is found there: {}", fmt::join(unread, ", ")));
    document.value =
        record(doctor_answer, {warnings == 0, warnings, notes, std::move(found), std::move(unread)});
    document.code = warnings > 0 ? exit_findings : exit_ok;
    return document;
}

struct DoctorOptions {
    std::vector<std::string> paths;
};

Outcome run_doctor(const DoctorOptions& options, const Globals& globals) {
    auto policies = read_policy_set(options.paths, globals);
    if (!globals.is_recorded()) affinityd::policy::resolve_programs(policies);
    const auto still = need(StillMachine::read(policies, globals.root, latencies_for(globals, {})));
    const auto root = need(Root::open(globals.root));
    const auto status = status_if_any(globals);
    const auto [seen, lacks_memory] = read_machine(*still, root, status);
    auto findings = survey::examine(seen);
    auto unread = still->missing_parts();
    if (lacks_memory) unread.emplace_back("memory of processes (proc/PID/numa_maps)");
    if (options.paths.empty()) add_daemons(status, findings);
    return doctor_document(findings, std::move(unread));
}

} // namespace

void add_doctor(CLI::App& app, Globals& globals, int& status) {
    const auto [verb, options] =
        add_verb(app,
                 {.name = "doctor",
                  .summary = "faults of the machine that work against affinity; needs no daemon",
                  .example = "affinityctl doctor",
                  .answer = doctor_answer},
                 globals, status, run_doctor);
    verb->add_option("PATH", options->paths, "policy files, or folders of them (default: the daemon's own)");
}

} // namespace affinityctl
