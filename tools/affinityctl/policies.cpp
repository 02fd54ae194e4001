// SPDX-License-Identifier: Apache-2.0
// affinityctl policies: where each policy comes from, what it overrides, what it holds now; or one of them,
// complete.
#include "policy/folders.hpp"
#include "policy/print.hpp"
#include "policy/reader.hpp"
#include "say.hpp"
#include "table.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>

#include <fmt/format.h>

namespace affinityctl {

namespace {

namespace policy = affinityd::policy;
using nlohmann::json;

struct Options {
    std::vector<std::string> folders;
    std::string name;
};

constexpr std::array model_names{"none", "irq", "process", "full"};

/// The daemon's status; null if none answers, which is no fault here: files can be listed without it.
json ask_status(const Globals& globals) {
    const auto answer = call_daemon(globals, "GetStatus");
    const auto value = answer ? json::parse(*answer, nullptr, false) : json(nullptr);
    return value.is_object() ? value : json(nullptr);
}

/// The folders asked for, else those of the daemon that answers, else the usual ones.
std::vector<std::string> folders_of(const Options& options, const json& status) {
    if (!options.folders.empty()) return options.folders;
    std::vector<std::string> folders;
    if (status.is_object())
        for (const auto& folder : status.value("policy_folders", json::array()))
            if (folder.is_string()) folders.push_back(folder.get<std::string>());
    return folders.empty() ? policy::standard_folders() : folders;
}

/// What the daemon says of a policy; null: it has none of that name.
json held_by(const json& status, const std::string& name) {
    if (!status.is_object()) return nullptr;
    for (const auto& one : status.value("policies", json::array()))
        if (one.value("name", "") == name) return one;
    return nullptr;
}

std::size_t queues_of(const json& status, const std::string& name) {
    std::size_t count = 0;
    for (const auto& queue : status.value("queues", json::array()))
        if (queue.value("policy", "") == name) ++count;
    return count;
}

json to_json(const policy::PolicySet& set, const json& status) {
    auto list = json::array();
    for (const auto& one : set.policies) {
        auto overrides = json::array();
        for (const auto& other : set.overrides)
            if (other.name == one.name) overrides.push_back(other.path);
        const auto held = held_by(status, one.name);
        list.push_back({{"name", one.name},
                        {"file", one.at.file},
                        {"description", one.description},
                        {"priority", one.priority},
                        {"specificity", policy::specificity(one.match)},
                        {"affinity", model_names[static_cast<std::size_t>(one.model)]},
                        {"overrides", std::move(overrides)},
                        {"loaded", held.is_object()},
                        {"processes", held.is_object() ? held.value("processes", json(0)) : json(nullptr)},
                        {"threads", held.is_object() ? held.value("threads", json(0)) : json(nullptr)},
                        {"queues", held.is_object() ? json(queues_of(status, one.name)) : json(nullptr)}});
    }
    auto masked = json::array();
    for (const auto& other : set.overrides)
        if (other.masked) masked.push_back({{"name", other.name}, {"file", other.path}, {"by", other.by}});
    return {{"policies", std::move(list)}, {"masked", std::move(masked)}, {"daemon", status.is_object()}};
}

void print_list(const json& document, bool color) {
    Table table({"POLICY", "PRIORITY", "AFFINITY", "PROCESSES", "THREADS", "QUEUES", "FILE"});
    for (const auto& one : document["policies"]) {
        table.add({text_of(one, "name"), text_of(one, "priority"), text_of(one, "affinity"),
                   text_of(one, "processes"), text_of(one, "threads"), text_of(one, "queues"),
                   printable(text_of(one, "file"))});
        for (const auto& path : one["overrides"])
            table.add({"", "", "", "", "", "", "  overrides " + printable(path.get<std::string>())});
    }
    for (const auto& one : document["masked"])
        table.add({text_of(one, "name"), "-", "masked", "-", "-", "-",
                   printable(text_of(one, "by")) + " masks " + printable(text_of(one, "file"))});
    if (table.empty())
        fmt::print("There are no policies.\n");
    else
        fmt::print("{}", table.to_string(color));
    if (!document["daemon"].get<bool>())
        fmt::print("No daemon answers: what the policies hold is not known.\n");
    for (const auto& one : document["policies"])
        if (document["daemon"].get<bool>() && !one["loaded"].get<bool>())
            fmt::print("{} is not loaded: `affinityctl reload` does it, or says why not.\n",
                       text_of(one, "name"));
}

int show_one(const policy::PolicySet& set, const Options& options, const Globals& globals) {
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

int policies(const Options& options, const Globals& globals) {
    const auto status = ask_status(globals);
    const auto documents = policy::read_folders(folders_of(options, status));
    if (!documents) return complain({exit_failure, documents.error().to_string()});
    const auto read = policy::read_policies(*documents);
    for (const auto& diagnostic : read.diagnostics)
        fmt::print(stderr, "{}\n", policy::to_string(diagnostic, true));
    if (!read.ok()) return complain({exit_findings, "the policies have errors"});
    if (!options.name.empty()) return show_one(read.set, options, globals);
    const auto document = to_json(read.set, status);
    if (globals.json)
        fmt::print("{}\n", document.dump(2, ' ', false, json::error_handler_t::replace));
    else
        print_list(document, globals.color);
    return exit_ok;
}

} // namespace

void add_policies(CLI::App& app, Globals& globals, int& status) {
    auto* verb =
        app.add_subcommand("policies", "where each policy comes from, what it overrides, what it holds now");
    const auto options = std::make_shared<Options>();
    verb->add_option("--policies", options->folders,
                     "folder instead of the daemon's; may be given again, the last wins");
    verb->require_subcommand(0, 1);
    auto* show = verb->add_subcommand("show", "one policy with every key and the value that holds");
    show->add_option("NAME", options->name, "the policy's name: its file's without .yaml")->required();
    verb->callback([options, &globals, &status] { status = policies(*options, globals); });
}

} // namespace affinityctl
