// SPDX-License-Identifier: Apache-2.0
// affinityctl test: whether tasks and interrupts of recorded machines get the CPUs that cases expect.
#include "affinityctl/offline/cases.hpp"
#include "affinityctl/offline/still_answers.hpp"
#include "affinityctl/offline/still_machine.hpp"
#include "affinityctl/verbs/policy_set.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "host/file.hpp"
#include "host/root.hpp"
#include "host/signals.hpp"
#include "topology/reader.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using nlohmann::json;
struct TestOptions {
    std::vector<std::string> paths;
};

// clang-format off
constexpr Field difference_fields[] = {
    {"line", "", "count", "the line of the expectation"},
    {"column", "", "count", "its column"},
    {"subject", "", "text", "a process and its thread, an interrupt, or a policy"},
    {"expected", "", "text", "the expectation in words"},
    {"found", "", "text", "the CPUs, policy or problem instead"},
    {"count", "", "count", "tasks or interrupts of which the same is to be said"},
};
constexpr Field case_fields[] = {
    {"name", "", "text", "the case"},
    {"file", "", "text", "its file"},
    {"line", "", "count", "its line"},
    {"ok", "", "flag", "everything is as expected"},
    {"differences", "", "object[]", "all that is not as expected", difference_fields},
};
constexpr Field test_fields[] = {
    {"ok", "", "flag", "each case is"},
    {"failed", "", "count", "cases that are not as expected"},
    {"cases", "", "object[]", "the cases", case_fields},
};
// clang-format on

/// The cases of all files. Their faults are on standard error, and a failure.
json cases_in(const std::vector<std::string>& paths, const std::string& root) {
    auto cases = json::array();
    std::vector<affinityd::policy::Diagnostic> findings;
    for (const auto& path : paths) {
        const auto text = need(affinityd::host::read_file(path));
        if (!text) throw CallError{exit_failure, path + ": there is no such file"};
        for (auto& one : read_cases(path, *text, root, findings))
            cases.push_back(std::move(one));
    }
    for (const auto& finding : findings)
        fmt::print(stderr, "{}\n", affinityd::policy::to_string(finding, true));
    if (!findings.empty()) throw CallError{exit_findings, "the cases have errors"};
    return cases;
}

json differences_of(const json& one, const Globals& globals) {
    const auto folder = text(one, "root");
    check_root(folder);
    const auto policies = read_policy_set(one["policies"], globals);
    const auto root = need(affinityd::host::Root::open(folder));
    // A signal waits until the files of made-up processes are gone.
    const affinityd::host::BlockedSignals blocked;
    std::optional<MadeUpProcesses> made;
    if (one.contains("processes"))
        made.emplace(one["processes"], need(affinityd::topology::read_topology(root)).online);
    const auto still = need(StillMachine::read(policies, folder, {}, made ? made->get() : OtherProcesses{}));
    return differences(one, *still, root, list(plan_of(*still), "problems"));
}

Outcome run_test(const TestOptions& options, const Globals& globals) {
    Document document;
    auto cases = json::array();
    std::size_t failures = 0;
    for (const auto& one : cases_in(options.paths, globals.is_recorded() ? globals.root : "")) {
        auto found = differences_of(one, globals);
        const bool ok = found.empty();
        failures += ok ? 0 : 1;
        document.add(
            Document::Line{{{ok ? "ok    " : "FAIL  ", ok ? Document::Look::good : Document::Look::bad},
                            {text(one, "name")}}});
        for (const auto& each : found) {
            const auto alike = count(each, "count");
            document.line(fmt::format("{}:{}:{}: {}: {}, expected {}{}", text(one, "file"),
                                      text_of(each, "line"), text_of(each, "column"), text(each, "subject"),
                                      text(each, "found"), text(each, "expected"),
                                      alike > 1 ? fmt::format(" ({} of these)", alike) : ""),
                          "  ");
        }
        cases.push_back(record(case_fields, {one["name"], one["file"], one["line"], ok, std::move(found)}));
    }
    const auto all = affinityd::counted(cases.size(), "case");
    document.line(fmt::format("{} of {} not as expected", failures, all));
    document.value = record(test_fields, {failures == 0, failures, std::move(cases)});
    document.code = failures == 0 ? exit_ok : exit_failure;
    return document;
}

} // namespace

void add_test(CLI::App& app, Globals& globals, int& status) {
    const auto [verb, options] = add_verb(app,
                                          {.name = "test",
                                           .summary = "whether policies give the CPUs that cases expect",
                                           .example = "affinityctl test web1-cases.yaml",
                                           .answer = test_fields},
                                          globals, status, run_test);
    verb->add_option("CASES", options->paths, "files of cases: affinityctl(1) has their keys")->required();
}

} // namespace affinityctl
