// SPDX-License-Identifier: Apache-2.0
// affinityctl policies: where each policy comes from, what it overrides and what it holds now; or one policy
// in full.
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/policy_set.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/policy_table.hpp"
#include "affinityctl/views/table.hpp"
#include "policy/diagnostic.hpp"
#include "policy/reader.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include <fmt/format.h>

namespace affinityctl {

namespace {

namespace policy = affinityd::policy;
using nlohmann::json;

struct PoliciesOptions {
    std::vector<std::string> folders;
    std::string name;
};

int show_one(const policy::ReadResult& read, const PoliciesOptions& options, const Globals& globals) {
    const auto& policies = read.set.policies;
    const auto found = std::ranges::find(policies, options.name, &policy::Policy::name);
    if (found == policies.end()) {
        for (const auto& faulty : faulty_files(read))
            if (faulty.name == options.name)
                return complain({exit_findings, "policy " + printable(options.name) +
                                                    " has errors; what is in force in its place, if "
                                                    "anything, affinityctl status says"});
        std::vector<std::string_view> names;
        for (const auto& each : policies)
            names.push_back(each.name);
        const auto hint = policy::did_you_mean(options.name, names);
        return complain(
            {exit_failure, "there is no policy " + options.name + (hint.empty() ? "" : " (" + hint + ")")});
    }
    const auto text = policy::to_yaml(*found);
    if (globals.json)
        fmt::print("{}\n", json{{"name", found->name}, {"file", found->at.file}, {"yaml", text}}.dump());
    else
        fmt::print("# {}, every key with the value that holds\n{}", printable(found->at.file), text);
    return exit_ok;
}

int policies(const PoliciesOptions& options, const Globals& globals) {
    warn_of_missing(options.folders);
    const auto documents =
        policy::read_folders(options.folders.empty() ? daemon_folders(globals) : options.folders);
    if (!documents) return complain(documents.error());
    const auto read = policy::read_policies(*documents);
    for (const auto& diagnostic : read.diagnostics)
        fmt::print(stderr, "{}\n", policy::to_string(diagnostic, true));
    if (!options.name.empty()) return show_one(read, options, globals);
    const auto document = policies_json(read, status_if_any(globals));
    if (globals.json)
        fmt::print("{}\n", dump(document, 2));
    else
        fmt::print("{}", policies_text(document, globals.color));
    return read.ok() ? exit_ok : exit_findings;
}

} // namespace

void add_policies(CLI::App& app, Globals& globals, int& status) {
    auto* verb =
        app.add_subcommand("policies", "where each policy comes from, what it overrides, what it holds now");
    const auto options = std::make_shared<PoliciesOptions>();
    verb->add_option("--policies", options->folders,
                     "folder instead of the daemon's; may be given again, the last wins");
    verb->require_subcommand(0, 1);
    auto* show = verb->add_subcommand("show", "one policy with every key and the value that holds");
    show->add_option("NAME", options->name, "the policy's name: its file's without .yaml")->required();
    verb->callback([options, &globals, &status] { status = policies(*options, globals); });
}

} // namespace affinityctl
