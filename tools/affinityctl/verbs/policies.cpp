// SPDX-License-Identifier: Apache-2.0
// affinityctl policies: where each policy comes from, what it overrides and what it holds now; or one policy
// in full.
#include "affinityctl/verbs/ask.hpp"
#include "affinityctl/verbs/verb.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/policy_table.hpp"
#include "affinityctl/views/table.hpp"
#include "policy/folders.hpp"
#include "policy/print.hpp"
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

/// The daemon's status; null if none answers, since files can be listed without it.
json ask_status(const Globals& globals) {
    const auto answer = call_daemon(globals.runtime_dir, "GetStatus");
    const auto value = answer ? json::parse(*answer, nullptr, false) : json(nullptr);
    return value.is_object() ? value : json(nullptr);
}

/// The folders of the command line, else those of the daemon, else the standard ones.
std::vector<std::string> folders_of(const PoliciesOptions& options, const json& status) {
    if (!options.folders.empty()) return options.folders;
    std::vector<std::string> folders;
    if (status.is_object())
        for (const auto& folder : status.value("policy_folders", json::array()))
            if (folder.is_string()) folders.push_back(folder.get<std::string>());
    return folders.empty() ? policy::standard_folders() : folders;
}

int show_one(const policy::PolicySet& set, const PoliciesOptions& options, const Globals& globals) {
    const auto found = std::ranges::find(set.policies, options.name, &policy::Policy::name);
    if (found == set.policies.end())
        return complain({exit_failure, "there is no policy " + printable(options.name)});
    const auto text = policy::to_yaml(*found);
    if (globals.json)
        fmt::print("{}\n", json{{"name", found->name}, {"file", found->at.file}, {"yaml", text}}.dump());
    else
        fmt::print("# {}, every key with the value that holds\n{}", printable(found->at.file), text);
    return exit_ok;
}

int policies(const PoliciesOptions& options, const Globals& globals) {
    const auto status = ask_status(globals);
    const auto documents = policy::read_folders(folders_of(options, status));
    if (!documents) return complain(documents.error());
    const auto read = policy::read_policies(*documents);
    for (const auto& diagnostic : read.diagnostics)
        fmt::print(stderr, "{}\n", policy::to_string(diagnostic, true));
    if (!read.ok()) return complain({exit_findings, "the policies have errors"});
    if (!options.name.empty()) return show_one(read.set, options, globals);
    const auto document = policies_json(read.set, status);
    if (globals.json)
        fmt::print("{}\n", dump(document, 2));
    else
        fmt::print("{}", policies_text(document, globals.color));
    return exit_ok;
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
