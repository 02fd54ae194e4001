// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/offline/cases.hpp"
#include "affinityctl/offline/cpu_expr.hpp"
#include "affinityctl/present/document.hpp"
#include "policy/cpu_expr.hpp"
#include "policy/pattern.hpp"

#include <algorithm>
#include <iterator>
#include <variant>

#include <fmt/format.h>

namespace affinityctl {

namespace {

using affinityd::CpuSet;
using affinityd::policy::Pattern;
using nlohmann::json;
using Patterns = std::vector<Pattern>;

/// A thread or an interrupt with the CPUs that it gets.
struct Placed {
    std::string process, name; ///< process "": an interrupt
    std::string policy, why;   ///< policy "none", and how it fails the conditions of all
    CpuSet cpus{};
    std::string nic{};
    int queue = -1;
};

std::vector<Placed> placed_on(StillMachine& still) {
    std::vector<Placed> all;
    const auto& policies = still.policies().policies;
    for (const auto& process : still.processes()) {
        Placed one{process.scan.comm(), "", process.policy ? policies[*process.policy].name : "none", ""};
        if (!process.policy)
            for (const auto& verdict : still.consider(process))
                one.why += fmt::format("; policy {} wants {} {}, found {}", policies[verdict.policy].name,
                                       verdict.field, verdict.wanted, verdict.found);
        still.plan(process, [&](const auto& thread, const affinityd::planner::ThreadPlan& plan) {
            one.name = thread.comm;
            one.cpus = plan.target   ? plan.target->mask
                       : plan.action ? plan.action->to.cpus() // kept off CPUs of others
                                     : thread.allowed;
            all.push_back(one);
        });
    }
    for (const auto& target : still.placements().queues)
        if (const auto* irq = std::get_if<affinityd::machine::IrqMask>(&target.subject);
            irq && target.rank == 0) {
            const auto present = still.present(target.subject).value_or(target.wanted);
            const auto wanted =
                affinityd::planner::wanted_of(target, nullptr, present, still.placements().online);
            all.push_back({"", irq->label, target.policy, "", wanted.cpus(), target.nic,
                           target.reason.queue ? static_cast<int>(*target.reason.queue) : -1});
        }
    std::ranges::stable_sort(all, {}, &Placed::queue);
    return all;
}

Patterns patterns_of(const json& map, const char* key) {
    Patterns patterns;
    for (const auto& one : list(map, key))
        patterns.push_back(*Pattern::parse(one.get<std::string>())); // was parsed as the file was read
    return patterns;
}

bool fits(const Patterns& patterns, const std::string& name) {
    return std::ranges::any_of(patterns, [&](const Pattern& one) { return one.matches(name); });
}

std::vector<Placed> meant_by(const json& expected, const std::vector<Placed>& all) {
    const auto processes = patterns_of(expected, "process"), threads = patterns_of(expected, "thread"),
               irqs = patterns_of(expected, "irq");
    const auto queue = expected.value("queue", -1);
    std::vector<Placed> meant;
    std::ranges::copy_if(all, std::back_inserter(meant), [&](const Placed& one) {
        if (!one.process.empty())
            return fits(processes, one.process) && (threads.empty() || fits(threads, one.name));
        if (!irqs.empty()) return fits(irqs, one.name);
        return one.nic == text(expected, "nic") && one.queue >= 0 && (queue < 0 || queue == one.queue);
    });
    return meant;
}

/// Adds a difference at the place of a map; those alike are counted.
void add(json& into, const json& at, const std::string& subject, const std::string& expected,
         const std::string& found) {
    json one{{"line", at["line"]},   {"column", at["column"]}, {"subject", subject},
             {"expected", expected}, {"found", found},         {"count", 0U}};
    const auto alike = std::ranges::find_if(into, [&](json other) {
        other["count"] = 0U;
        return other == one;
    });
    auto& place = alike == into.end() ? into.emplace_back(std::move(one)) : *alike;
    place["count"] = place["count"].get<unsigned>() + 1;
}

void compare(const json& expected, const std::vector<Placed>& all, const StillMachine& still,
             const affinityd::host::Root& root, json& into) {
    const auto meant = meant_by(expected, all);
    const auto* kind = expected.contains("process") ? "tasks" : "interrupts that a policy places";
    if (meant.empty()) return add(into, expected, kind, "one or more", "none");
    const bool is_within = expected.contains("within");
    const auto policy = text(expected, "policy");
    std::vector<CpuSet> cpus;
    auto machine = still.machine();
    for (const auto& expr : list(expected, is_within ? "within" : "cpus")) {
        auto set =
            evaluate_cpu_expr(*affinityd::policy::parse_cpu_expr(expr.get<std::string>()), {}, machine, root);
        if (!set) return add(into, expected, expr, "CPUs", set.error().message);
        cpus.push_back(std::move(*set));
    }
    if (cpus.size() > 1 && cpus.size() != meant.size())
        return add(into, expected, kind, std::to_string(cpus.size()), std::to_string(meant.size()));
    for (std::size_t at = 0; at < meant.size(); ++at) {
        const auto& one = meant[at];
        const auto subject =
            one.process.empty() || one.process == one.name ? one.name : one.process + " " + one.name;
        if (!policy.empty() && policy != one.policy)
            add(into, expected, subject, "policy " + policy, "policy " + one.policy + one.why);
        if (cpus.empty()) continue;
        const auto& wanted = cpus[cpus.size() == 1 ? 0 : at];
        if (is_within ? !wanted.contains(one.cpus) : one.cpus != wanted)
            add(into, expected, subject, (is_within ? "within " : "CPUs ") + wanted.to_list(),
                "CPUs " + one.cpus.to_list());
    }
}

} // namespace

json differences(const json& expected, StillMachine& still, const affinityd::host::Root& root,
                 const json& problems) {
    auto found = json::array();
    const auto all = placed_on(still);
    for (const auto& one : list(expected, "expect"))
        compare(one, all, still, root, found);
    const auto awaited = patterns_of(expected, "problems");
    for (const auto& problem : problems)
        if (const auto message = text(problem, "message"); !fits(awaited, message))
            add(found, expected, "policy " + text(problem, "policy"), "no problem", message);
    for (const auto& pattern : awaited)
        if (std::ranges::none_of(problems,
                                 [&](const json& one) { return pattern.matches(text(one, "message")); }))
            add(found, expected, "problems", pattern.text(), "none");
    return found;
}

} // namespace affinityctl
