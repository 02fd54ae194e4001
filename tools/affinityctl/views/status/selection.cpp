// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/status/selection.hpp"

#include "affinityctl/daemon/members.hpp"
#include "affinityctl/views/status/findings.hpp"

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

/// The policy's counts, of these processes alone.
void recount(json& policy, const json& processes) {
    const auto name = text(policy, "name");
    std::size_t held = 0, threads = 0, wanted = 0, in_place = 0, drifted = 0;
    for (const auto& process : processes) {
        if (text(process, "policy") != name) continue;
        ++held;
        for (const auto& thread : list(process, "threads")) {
            const auto state = text(thread, "state");
            ++threads;
            in_place += state == "in place" ? 1 : 0;
            drifted += state == "drifted" ? 1 : 0;
            wanted += state == "in place" || state == "immovable" || is_out_of_place(thread) ? 1 : 0;
        }
    }
    policy.update({{"processes", held},
                   {"threads", threads},
                   {"threads_wanted", wanted},
                   {"threads_in_place", in_place},
                   {"threads_drifted", drifted}});
}

/// Everything about these processes and queues and their policies, counted anew. Measurements are the
/// machine's. `subject`: in words.
json part_of(const json& status, const std::string& subject, json processes, json queues,
             std::set<std::string> policies = {}) {
    for (const auto* parts : {&processes, &queues})
        for (const auto& each : *parts)
            policies.insert(text(each, "policy"));
    json part = status;
    part["subject"] = subject;
    part["policies"] = those(status, "policies", is_of(policies, "name"));
    for (auto& policy : part["policies"])
        recount(policy, processes);
    for (const char* key : {"problems", "units", "costs"})
        part[key] = those(status, key, is_of(policies));
    part["measurement"] = nullptr;
    part["processes"] = std::move(processes);
    part["queues"] = std::move(queues);
    return part;
}

/// Also one that holds nothing.
std::optional<json> of_policy(const json& status, const std::string& name) {
    const std::set<std::string> policies{name};
    if (those(status, "policies", is_of(policies, "name")).empty()) return std::nullopt;
    return part_of(status, "policy " + name, those(status, "processes", is_of(policies)),
                   those(status, "queues", is_of(policies)), policies);
}

/// Its queues, and the processes that it serves.
std::optional<json> of_interface(const json& status, const std::string& name) {
    auto queues = those(status, "queues", [&](const json& queue) { return text(queue, "nic") == name; });
    auto processes = those(status, "processes",
                           [&](const json& process) { return has_name(list(process, "nics"), name); });
    if (queues.empty() && processes.empty()) return std::nullopt;
    return part_of(status, "interface " + name, std::move(processes), std::move(queues));
}

/// With the queues of the interfaces that serve them.
std::optional<json> of_processes(const json& status, const std::string& subject, const Choice& is_chosen) {
    auto processes = those(status, "processes", is_chosen);
    if (processes.empty()) return std::nullopt;
    json nics = json::array();
    for (const auto& process : processes)
        std::ranges::copy(list(process, "nics"), std::back_inserter(nics));
    auto queues =
        those(status, "queues", [&](const json& queue) { return has_name(nics, text(queue, "nic")); });
    return part_of(status, subject, std::move(processes), std::move(queues));
}

} // namespace

std::optional<json> selected(const json& status, const std::string& subject) {
    if (auto found = of_policy(status, subject)) return found;
    if (auto found = of_interface(status, subject)) return found;
    return of_processes(status, "process " + subject, [&](const json& process) {
        return std::to_string(count(process, "pid")) == subject ||
               std::ranges::any_of(list(process, "threads"), [&](const json& thread) {
                   return std::to_string(count(thread, "tid")) == subject;
               });
    });
}

std::optional<json> selected(const json& status, const std::string& unit, const std::vector<int>& pids) {
    const std::set<std::uint64_t> wanted(pids.begin(), pids.end());
    return of_processes(status, "unit " + unit,
                        [&](const json& process) { return wanted.contains(count(process, "pid")); });
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
