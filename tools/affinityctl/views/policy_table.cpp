// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/policy_table.hpp"

#include "affinityctl/values/counted.hpp"
#include "affinityctl/views/json_text.hpp"
#include "affinityctl/views/queues.hpp"
#include "affinityctl/views/table.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityctl {

namespace policy = affinityd::policy;
using nlohmann::json;

namespace {

/// What the daemon reports about a policy; null: it has none of that name.
json held_by(const json& status, const std::string& name) {
    if (!status.is_object()) return nullptr;
    for (const auto& one : status.value("policies", json::array()))
        if (one.value("name", "") == name) return one;
    return nullptr;
}

} // namespace

std::vector<FaultyFile> faulty_files(const policy::ReadResult& read) {
    std::vector<FaultyFile> files;
    for (const auto& found : read.diagnostics) {
        if (found.severity != policy::Severity::error) continue;
        const auto& path = found.at.file;
        const auto known = std::ranges::find(files, path, &FaultyFile::path);
        if (known != files.end()) {
            ++known->errors;
            continue;
        }
        auto name = path.substr(path.rfind('/') + 1);
        files.push_back({name.substr(0, name.rfind('.')), path, 1});
    }
    return files;
}

json policies_json(const policy::ReadResult& read, const json& status) {
    const auto& set = read.set;
    auto counts = queues_by_policy(status);
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
                        {"affinity", to_string(one.model)},
                        {"overrides", std::move(overrides)},
                        {"loaded", held.is_object()},
                        {"released", held.is_object() && held.value("released", false)},
                        {"processes", held.is_object() ? held.value("processes", json(0)) : json(nullptr)},
                        {"threads", held.is_object() ? held.value("threads", json(0)) : json(nullptr)},
                        {"queues", held.is_object() ? json(counts[one.name].wanted) : json(nullptr)}});
    }
    auto masked = json::array();
    for (const auto& other : set.overrides)
        if (other.masked) masked.push_back({{"name", other.name}, {"file", other.path}, {"by", other.by}});
    auto faulty = json::array();
    for (const auto& file : faulty_files(read))
        faulty.push_back({{"name", file.name},
                          {"file", file.path},
                          {"errors", file.errors},
                          {"loaded", held_by(status, file.name).is_object()}});
    return {{"policies", std::move(list)},
            {"masked", std::move(masked)},
            {"faulty", std::move(faulty)},
            {"daemon", status.is_object()}};
}

std::string policies_text(const json& document, bool color) {
    Table table({"POLICY", "PRIORITY", "AFFINITY", "PROCESSES", "THREADS", "QUEUES", "FILE"});
    for (const auto& one : document["policies"]) {
        const auto released = one["released"].get<bool>() ? ", released" : "";
        table.add({text_of(one, "name"), text_of(one, "priority"), text_of(one, "affinity") + released,
                   text_of(one, "processes"), text_of(one, "threads"), text_of(one, "queues"),
                   printable(text_of(one, "file"))});
        for (const auto& path : one["overrides"])
            table.add({"", "", "", "", "", "", "  overrides " + printable(path.get<std::string>())});
    }
    for (const auto& one : document["masked"])
        table.add({text_of(one, "name"), "-", "masked", "-", "-", "-",
                   printable(text_of(one, "by")) + " masks " + printable(text_of(one, "file"))});
    for (const auto& one : document["faulty"])
        table.add({text_of(one, "name"), "-", "FAULTY", "-", "-", "-",
                   printable(text_of(one, "file")) + ": " +
                       counted(one["errors"].get<std::size_t>(), "error") +
                       (one["loaded"].get<bool>() ? "; an earlier version is in force" : "")});
    std::string text = table.empty() ? no_policies + std::string("\n") : table.to_string(color);
    if (!document["daemon"].get<bool>())
        return text + "No daemon answers: what the policies hold is not known.\n";
    for (const auto& one : document["policies"])
        if (!one["loaded"].get<bool>())
            text += fmt::format("{} is not loaded: `affinityctl reload` does it, or says why not.\n",
                                text_of(one, "name"));
    return text;
}

} // namespace affinityctl
