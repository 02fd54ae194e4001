// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/status/selection.hpp"

#include "affinityctl/daemon/members.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>

namespace affinityctl {

using nlohmann::json;

namespace {

using Choice = std::function<bool(const json&)>;

json those(const json& status, const char* key, const Choice& is_chosen) {
    json found = json::array();
    std::ranges::copy_if(list(status, key), std::back_inserter(found), is_chosen);
    return found;
}

bool has_name(const json& names, const std::string& name) {
    return std::ranges::any_of(names, [&](const json& each) { return each == name; });
}

Choice is_of(const std::set<std::string>& policies, const char* key = "policy") {
    return [&policies, key](const json& each) { return policies.contains(text(each, key)); };
}

/// Everything about these processes and queues, and what is said of their policies.
json part_of(const json& status, json processes, json queues) {
    std::set<std::string> policies;
    for (const auto* parts : {&processes, &queues})
        for (const auto& each : *parts)
            policies.insert(text(each, "policy"));
    json part = status;
    part["policies"] = those(status, "policies", is_of(policies, "name"));
    for (const char* key : {"problems", "units", "costs"})
        part[key] = those(status, key, is_of(policies));
    part["processes"] = std::move(processes);
    part["queues"] = std::move(queues);
    return part;
}

std::optional<json> of_policy(const json& status, const std::string& name) {
    const std::set<std::string> policies{name};
    auto found = those(status, "policies", is_of(policies, "name"));
    if (found.empty()) return std::nullopt;
    auto part = part_of(status, those(status, "processes", is_of(policies)),
                        those(status, "queues", is_of(policies)));
    part["policies"] = std::move(found); // also one that holds nothing
    for (const char* key : {"problems", "units", "costs"})
        part[key] = those(status, key, is_of(policies));
    return part;
}

/// Its queues, and the processes that it serves.
std::optional<json> of_interface(const json& status, const std::string& name) {
    auto queues = those(status, "queues", [&](const json& queue) { return text(queue, "nic") == name; });
    auto processes = those(status, "processes",
                           [&](const json& process) { return has_name(list(process, "nics"), name); });
    if (queues.empty() && processes.empty()) return std::nullopt;
    return part_of(status, std::move(processes), std::move(queues));
}

/// With the queues of the interfaces that serve them.
std::optional<json> of_processes(const json& status, const Choice& is_chosen) {
    auto processes = those(status, "processes", is_chosen);
    if (processes.empty()) return std::nullopt;
    json nics = json::array();
    for (const auto& process : processes)
        std::ranges::copy(list(process, "nics"), std::back_inserter(nics));
    auto queues =
        those(status, "queues", [&](const json& queue) { return has_name(nics, text(queue, "nic")); });
    return part_of(status, std::move(processes), std::move(queues));
}

} // namespace

std::optional<json> selected(const json& status, const std::string& subject) {
    if (auto found = of_policy(status, subject)) return found;
    if (auto found = of_interface(status, subject)) return found;
    return of_processes(status, [&](const json& process) {
        return std::to_string(count(process, "pid")) == subject ||
               std::ranges::any_of(list(process, "threads"), [&](const json& thread) {
                   return std::to_string(count(thread, "tid")) == subject;
               });
    });
}

std::optional<json> selected(const json& status, const std::vector<int>& pids) {
    const std::set<std::uint64_t> wanted(pids.begin(), pids.end());
    return of_processes(status, [&](const json& process) { return wanted.contains(count(process, "pid")); });
}

std::vector<std::string> names_in(const json& status) {
    std::set<std::string> names;
    for (const auto& policy : list(status, "policies"))
        names.insert(text(policy, "name"));
    for (const auto& queue : list(status, "queues"))
        names.insert(text(queue, "nic"));
    return {names.begin(), names.end()};
}

} // namespace affinityctl
