// SPDX-License-Identifier: Apache-2.0
// affinityctl policies: where each policy comes from, what it overrides and what it holds now; or one policy
// in full.
#include "affinityctl/client/answers.hpp"
#include "affinityctl/verbs/policy_set.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "base/text.hpp"
#include "policy/diagnostic.hpp"
#include "policy/reader.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace affinityctl {

namespace {

namespace policy = affinityd::policy;
using nlohmann::json;

struct PoliciesOptions {
    std::vector<std::string> folders;
    std::string name;
};

/// Errors by file.
std::map<std::string, std::size_t> faulty_files(const policy::ReadResult& read) {
    std::map<std::string, std::size_t> files;
    for (const auto& found : read.diagnostics)
        if (found.severity == policy::Severity::error) ++files[found.at.file];
    return files;
}

/// The daemon's report on a policy; null: it has none of that name.
json held_by(const json& status, std::string_view name) {
    for (const auto& one : list(status, "policies"))
        if (text(one, "name") == name) return one;
    return nullptr;
}

// clang-format off
constexpr Field listed_fields[] = {
    {"name", "POLICY", "text", "its name"},
    {"file", "FILE", "prose", "its file"},
    {"description", "", "text", "its description"},
    {"priority", "PRIORITY", "number", "its priority"},
    {"specificity", "", "number", "how narrow its match is"},
    {"affinity", "AFFINITY", "text", "none, irq, process or full"},
    {"overrides", "", "text[]", "files of the same name that it overrides"},
    {"loaded", "", "flag", "the daemon has it"},
    {"released", "", "flag", "it was released by hand"},
    {"processes", "PROCESSES", "count?", "its processes, null without a daemon"},
    {"threads", "THREADS", "count?", "their threads"},
    {"queues", "QUEUES", "count?", "interrupts and steering of its queues"},
};
constexpr Field masked_fields[] = {
    {"name", "", "text", "the policy"},
    {"file", "", "text", "the masked file"},
    {"by", "", "text", "the empty file or link that masks it"},
};
constexpr Field faulty_fields[] = {
    {"name", "", "text", "the policy"},
    {"file", "", "text", "its file"},
    {"errors", "", "count", "errors in it"},
    {"loaded", "", "flag", "an earlier version is in force"},
};
constexpr Field policies_answer[] = {
    {"policies", "", "object[]", "policies that were read", listed_fields},
    {"masked", "", "object[]", "policies that are switched off", masked_fields},
    {"faulty", "", "object[]", "files with errors", faulty_fields},
    {"daemon", "", "flag", "a daemon answers"},
};
constexpr Field shown_fields[] = {
    {"name", "", "text", "the policy"},
    {"file", "", "text", "its file"},
    {"yaml", "", "text", "every key with the value that holds"},
};
// clang-format on

Outcome one_policy(const policy::ReadResult& read, const std::string& name) {
    std::vector<std::string> names;
    for (const auto& one : read.set.policies) {
        names.push_back(one.name);
        if (one.name != name) continue;
        const auto yaml = policy::to_yaml(one);
        Document document;
        document.value = record(shown_fields, {one.name, one.at.file, yaml});
        document.line("# " + one.at.file + ", every key with the value that holds");
        document.verbatim(yaml);
        return document;
    }
    for (const auto& [file, errors] : faulty_files(read))
        if (policy::policy_name(file) == name)
            return failed(exit_findings, "policy " + name +
                                             " has errors; affinityctl status says what is in force in its "
                                             "place, if anything");
    return failed(exit_failure, "there is no policy " + name + guess(name, names));
}

/// The policies that were read, and the daemon's `status` (or null) on them.
json policies_json(const policy::ReadResult& read, const json& status) {
    const auto& set = read.set;
    auto counts = queues_by_policy(status);
    auto listed = json::array(), masked = json::array(), faulty = json::array();
    for (const auto& one : set.policies) {
        auto overrides = json::array();
        for (const auto& other : set.overrides)
            if (other.name == one.name) overrides.push_back(other.path);
        const auto held = held_by(status, one.name);
        listed.push_back(
            record(listed_fields,
                   {one.name, one.at.file, one.description, one.priority, policy::specificity(one.match),
                    to_string(one.model), std::move(overrides), held.is_object(),
                    member(held, "released") == true, member(held, "processes"), member(held, "threads"),
                    held.is_null() ? json() : json(counts[one.name].wanted)}));
    }
    for (const auto& other : set.overrides)
        if (other.masked) masked.push_back(record(masked_fields, {other.name, other.path, other.by}));
    for (const auto& [file, errors] : faulty_files(read)) {
        const auto name = policy::policy_name(file);
        faulty.push_back(record(faulty_fields, {name, file, errors, held_by(status, name).is_object()}));
    }
    return record(policies_answer,
                  {std::move(listed), std::move(masked), std::move(faulty), status.is_object()});
}

Document policies_document(json value) {
    Document document;
    Document::Table table{
        .fields = listed_fields,
        .columns = {"POLICY", "PRIORITY", "AFFINITY", "PROCESSES", "THREADS", "QUEUES", "FILE"},
        .folded = true};
    for (json one : value["policies"]) {
        if (one["released"].get<bool>()) one["affinity"] = text_of(one, "affinity") + ", released";
        const auto overrides = one["overrides"];
        table.rows.push_back(std::move(one));
        for (const auto& path : overrides)
            table.rows.push_back({{"name", ""}, {"file", "  overrides " + path.get<std::string>()}});
    }
    for (const auto& one : value["masked"])
        table.rows.push_back({{"name", one["name"]},
                              {"affinity", "masked"},
                              {"file", text_of(one, "by") + " masks " + text_of(one, "file")}});
    for (const auto& one : value["faulty"])
        table.rows.push_back(
            {{"name", one["name"]},
             {"affinity", "FAULTY"},
             {"file", text_of(one, "file") + ": " +
                          affinityd::counted(one["errors"].get<std::size_t>(), "error") +
                          (one["loaded"].get<bool>() ? "; an earlier version is in force" : "")}});
    if (table.rows.empty())
        document.line(no_policies);
    else
        document.add(std::move(table));
    if (!value["daemon"].get<bool>())
        document.line("No daemon answers: what the policies hold is not known.");
    for (const auto& one : value["policies"])
        if (value["daemon"].get<bool>() && !one["loaded"].get<bool>())
            document.line(text_of(one, "name") +
                          " is not loaded: `affinityctl reload` does it, or says why not.");
    document.value = std::move(value);
    return document;
}

Outcome run_policies(const PoliciesOptions& options, const Globals& globals) {
    const auto read = policy::read_policies(read_policy_folders(options.folders, globals));
    for (const auto& diagnostic : read.diagnostics)
        fmt::print(stderr, "{}\n", policy::to_string(diagnostic, true));
    if (!options.name.empty()) return one_policy(read, options.name);
    auto document = policies_document(policies_json(read, status_if_any(globals)));
    document.code = read.ok() ? exit_ok : exit_findings;
    return document;
}

} // namespace

void add_policies(CLI::App& app, Globals& globals, int& status) {
    const auto [verb, options] =
        add_verb(app,
                 {.name = "policies",
                  .summary = "where each policy comes from, what it overrides and holds",
                  .example = "affinityctl policies show nginx",
                  .answer = policies_answer},
                 globals, status, run_policies);
    add_repeated(*verb, "--policies", options->folders,
                 "folder instead of the daemon's; may be given again, the last wins", "DIR");
    verb->require_subcommand(0, 1);
    auto* show =
        add_verb(*verb,
                 {.name = "show",
                  .summary = "one policy with every key and the value that holds",
                  .example = "affinityctl policies show nginx",
                  .answer = shown_fields},
                 globals, status, [&globals, shown = options] { return run_policies(*shown, globals); });
    show->add_option("NAME", options->name, "the policy's name: its file's without .yaml")->required();
}

} // namespace affinityctl
