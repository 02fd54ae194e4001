// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/locality/subject.hpp"

#include "affinityctl/offline/subjects.hpp"
#include "affinityctl/present/document.hpp"
#include "base/text.hpp"
#include "inventory/process_files.hpp"
#include "policy/diagnostic.hpp"

#include <algorithm>
#include <cerrno>

namespace affinityctl {

using affinityd::fail;
using affinityd::Result;
using affinityd::netdev::Nic;
using nlohmann::json;

namespace {

std::string hint(const std::string& word, std::span<const Nic> nics, const json& status) {
    std::vector<std::string> names;
    for (const auto& nic : nics)
        names.push_back(nic.name);
    for (const auto& policy : list(status, "policies"))
        names.push_back(text(policy, "name"));
    const std::vector<std::string_view> words(names.begin(), names.end());
    const auto near = affinityd::policy::did_you_mean(word, words);
    return near.empty() ? "" : " (" + near + ")";
}

} // namespace

std::vector<unsigned> devices_over(std::span<const Nic> nics, const std::string& name) {
    std::vector<std::string> names{name};
    std::vector<unsigned> devices;
    // Interfaces may be above each other in any order, and a hostile recording may have a loop.
    for (std::size_t at = 0; at < names.size(); ++at)
        for (const auto& nic : nics) {
            if (nic.name == names[at]) devices.push_back(nic.ifindex);
            const bool is_above = std::ranges::find(nic.lower, names[at]) != nic.lower.end();
            if (is_above && std::ranges::find(names, nic.name) == names.end()) names.push_back(nic.name);
        }
    return devices;
}

std::optional<std::vector<int>> processes_under(const json& status, const std::string& policy) {
    const auto& policies = list(status, "policies");
    if (std::ranges::none_of(policies, [&](const json& one) { return text(one, "name") == policy; }))
        return std::nullopt;
    std::vector<int> pids;
    for (const auto& process : list(status, "processes"))
        if (text(process, "policy") == policy) pids.push_back(static_cast<int>(count(process, "pid")));
    return pids;
}

std::string steering_policy(const json& status, const std::vector<int>& pids) {
    for (const auto& policy : list(status, "policies")) {
        const auto steer = member(policy, "steer");
        if (count(steer, "listeners") == 0 && list(steer, "left").empty()) continue;
        const auto name = text(policy, "name");
        const auto its = processes_under(status, name).value_or(std::vector<int>());
        if (std::ranges::find_first_of(its, pids) != its.end()) return name;
    }
    return {};
}

Result<LocalitySubject> read_subject(const affinityd::host::Root& root, const std::string& word,
                                     std::span<const Nic> nics, const json& status) {
    using Kind = LocalitySubject::Kind;
    const auto quoted = affinityd::policy::in_quotes(word);
    if (word.empty()) return LocalitySubject{};
    if (std::ranges::all_of(word, affinityd::is_digit)) {
        const auto id = affinityd::parse_number<int>(word);
        const auto pid = id ? affinityd::inventory::read_process_id(root, *id) : std::optional<int>();
        if (!pid) return fail("there is no process " + quoted, {}, ESRCH);
        return LocalitySubject{Kind::process, word, *pid, {}};
    }
    if (std::ranges::find(nics, word, &Nic::name) != nics.end())
        return LocalitySubject{Kind::nic, word, 0, devices_over(nics, word)};
    if (processes_under(status, word)) return LocalitySubject{Kind::policy, word, 0, {}};
    if (word.find('.') != std::string::npos) {
        const auto pids = processes_of_unit(root, word);
        if (!pids) return std::unexpected(pids.error());
        if (!pids->empty()) return LocalitySubject{Kind::unit, word, 0, {}};
        return fail("no interface, policy or process of a unit has the name " + quoted, {}, ENOENT);
    }
    if (!status.is_object())
        return fail("there is no interface " + quoted +
                        ", and no daemon answers that could have such a policy",
                    {}, ENOTCONN);
    return fail("there is no interface or policy " + quoted + hint(word, nics, status), {}, ENOENT);
}

} // namespace affinityctl
