// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/client/nic_status.hpp"

#include "affinityctl/present/document.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using nlohmann::json;

bool is_of(const json& process, const std::string& policy, const std::string& nic) {
    if (text(process, "policy") != policy) return false;
    const auto& nics = list(process, "nics");
    return nics.empty() || std::ranges::find(nics, json(nic)) != nics.end();
}

/// Tasks of the policy that use the interface and belong on CPUs of the queue.
json tasks_on(const json& status, const std::string& policy, const std::string& nic,
              const affinityd::CpuSet& where) {
    auto tasks = json::array();
    for (const auto& process : list(status, "processes")) {
        if (!is_of(process, policy, nic)) continue;
        for (const auto& thread : list(process, "threads"))
            if (cpus(thread, "wanted").intersects(where))
                tasks.push_back({{"pid", member(process, "pid")},
                                 {"tid", member(thread, "tid")},
                                 {"comm", text(thread, "comm")}});
    }
    return tasks;
}

void add(json& into, const json& queue, const json& status, const std::string& error) {
    into["wanted"] = text(queue, "wanted");
    into["policy"] = text(queue, "policy");
    into["why"] = text(queue, "reason");
    if (queue.contains("shared_with")) into["shared_with"] = queue["shared_with"];
    if (queue.contains("original")) into["original"] = queue["original"];
    if (const auto note = text(queue, "note"); !note.empty())
        into["error"] = note;
    else if (!error.empty())
        into["error"] = error;
    into["tasks"] = tasks_on(status, text(queue, "policy"), text(queue, "nic"), cpus(queue, "wanted"));
}

bool is_vector(const json& queue, const json& vector) {
    return text(queue, "kind") == "irq" && member(queue, "irq") == member(vector, "irq") &&
           text(queue, "label") == text(vector, "label");
}

std::string refusal(const json& status, const std::string& subject) {
    return text(member(status, "refused"), subject.c_str());
}

void merge_nic(json& nic, const json& queue, const json& status) {
    for (auto& vector : nic["vectors"])
        if (is_vector(queue, vector))
            add(vector, queue, status,
                refusal(status,
                        fmt::format("IRQ {} ({})", vector["irq"].get<unsigned>(), text(vector, "label"))));
    if (text(queue, "kind") != "steering") return;
    for (auto& own : nic["queues"]) {
        const auto name = fmt::format("{}-{}", text(own, "direction"), own["index"].get<unsigned>());
        if (name == text(queue, "queue"))
            add(own, queue, status, refusal(status, text(nic, "name") + " " + name));
    }
}

} // namespace

void merge_status(json& nics, const json& status) {
    for (const auto& queue : list(status, "queues"))
        for (auto& nic : nics)
            if (text(nic, "name") == text(queue, "nic")) merge_nic(nic, queue, status);
}

std::string tasks_text(const json& tasks) {
    constexpr std::size_t shown = 3;
    std::string all;
    for (std::size_t i = 0; i < std::min(tasks.size(), shown); ++i)
        all += fmt::format("{}{} {}", all.empty() ? "" : ", ", tasks[i].value("comm", ""),
                           tasks[i].value("tid", json()).dump());
    if (tasks.size() > shown) all += fmt::format(" and {} more", tasks.size() - shown);
    return all.empty() ? "-" : all;
}

} // namespace affinityctl
