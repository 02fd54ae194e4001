// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/offline/policy_occupancy.hpp"

#include "affinityctl/values/counted.hpp"
#include "host/file.hpp"
#include "host/root.hpp"
#include "machine/reader.hpp"
#include "planner/placements.hpp"
#include "policy/folders.hpp"
#include "policy/reader.hpp"
#include "policy/suggest.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace affinityctl {

using affinityd::Result;
namespace planner = affinityd::planner;
namespace policy = affinityd::policy;

namespace {

/// The documents of the request: those of the folders, overridden by the files that it names.
Result<std::vector<policy::Document>> documents_of(const PolicyRequest& request) {
    auto documents =
        policy::read_folders(request.folders.empty() ? policy::standard_folders() : request.folders);
    if (!documents) return documents;
    for (const auto& name : request.names) {
        if (name.find('/') == std::string::npos && !name.ends_with(".yaml")) continue;
        auto content = affinityd::host::read_file(name);
        if (!content) return std::unexpected(content.error());
        if (!*content) return affinityd::fail("there is no such policy file", name);
        documents->push_back({name, std::move(**content)});
    }
    return documents;
}

std::string policy_name(const std::string& asked) {
    std::string name = asked.substr(asked.rfind('/') + 1);
    if (name.ends_with(".yaml")) name.resize(name.size() - 5);
    return name;
}

Result<void> all_known(const PolicyRequest& request, const policy::PolicySet& set) {
    for (const auto& asked : request.names) {
        if (std::ranges::find(set.policies, policy_name(asked), &policy::Policy::name) != set.policies.end())
            continue;
        std::vector<std::string_view> names;
        for (const auto& each : set.policies)
            names.push_back(each.name);
        const auto hint = policy::did_you_mean(asked, names);
        std::string known;
        for (const auto each : names)
            known += (known.empty() ? "" : ", ") + std::string(each);
        return affinityd::fail("there is no such policy" + (hint.empty() ? "" : " (" + hint + ")") +
                                   (known.empty() ? "; none is there" : "; there are " + known),
                               asked);
    }
    return {};
}

Tenant tenant_of(const planner::ResolvedPolicy& resolved, const planner::Placements& placements) {
    Tenant tenant{.policy = resolved.policy->name,
                  .model = std::string(to_string(resolved.policy->model)),
                  .cpus = resolved.allowed,
                  .exclusive = resolved.policy->exclusive != affinityd::policy::Exclusive::no,
                  .pins = {},
                  .summary = {}};
    if (!resolved.active) return tenant;
    std::size_t count = 0;
    if (resolved.policy->model == policy::Model::process || resolved.policy->model == policy::Model::full)
        for (std::size_t rule = 0; rule < resolved.distributions.size(); ++rule) {
            const auto& slots = resolved.distributions[rule];
            const std::string name = rule == 0 ? "slot" : fmt::format("thread rule {}, slot", rule);
            for (std::size_t i = 0; i < slots.size(); ++i)
                tenant.pins.push_back({fmt::format("{} {} of {}", name, i + 1, slots.size()), slots[i].mask});
            if (rule == 0) count = slots.size();
        }
    std::size_t interrupts = 0;
    for (const auto& queue : placements.queues) {
        const auto* irq = std::get_if<planner::IrqMask>(&queue.subject);
        if (irq == nullptr || queue.policy != tenant.policy || queue.wanted.cpus().empty() || queue.rank > 0)
            continue;
        tenant.pins.push_back({fmt::format("{} (IRQ {})", irq->label, irq->irq), queue.wanted.cpus(), true});
        ++interrupts;
    }
    tenant.summary = counted(count, "slot");
    if (interrupts > 0) tenant.summary += ", " + counted(interrupts, "interrupt", "interrupts");
    return tenant;
}

std::string source_of(const std::vector<std::string>& policies) {
    if (policies.empty()) return "as the policies would have it";
    std::string text = policies.size() == 1 ? "as policy " : "as policies ";
    for (std::size_t i = 0; i < policies.size(); ++i)
        text += (i == 0 ? "" : ", ") + policies[i];
    return text + " would have it";
}

} // namespace

Result<Occupancy> occupancy_of_policies(const PolicyRequest& request, const affinityd::host::Root& root,
                                        const affinityd::topology::Topology& topology,
                                        const std::vector<affinityd::netdev::Nic>& nics,
                                        std::vector<policy::Diagnostic>& faults) {
    const auto documents = documents_of(request);
    if (!documents) return std::unexpected(documents.error());
    auto read = policy::read_policies(*documents);
    policy::add_source_lines(read.diagnostics, *documents);
    std::ranges::copy_if(read.diagnostics, std::back_inserter(faults),
                         [](const auto& each) { return each.severity == policy::Severity::error; });
    if (auto known = all_known(request, read.set); !known) return std::unexpected(known.error());
    auto irqs = affinityd::machine::read_irqs(root);
    if (!irqs) return std::unexpected(irqs.error());
    affinityd::machine::Machine machine{topology, nics, std::move(*irqs)};
    affinityd::machine::link_vectors(machine);
    const auto placements = planner::compile(read.set, machine, {});
    std::vector<std::string> wanted;
    std::ranges::transform(request.names, std::back_inserter(wanted), policy_name);
    const auto is_wanted = [&](const std::string& name) {
        return wanted.empty() || std::ranges::find(wanted, name) != wanted.end();
    };
    Occupancy occupancy;
    occupancy.unit = "slot";
    occupancy.source = source_of(wanted);
    for (const auto& resolved : placements.policies) {
        if (!is_wanted(resolved.policy->name)) continue;
        occupancy.tenants.push_back(tenant_of(resolved, placements));
        const bool moves_queues =
            resolved.policy->model == policy::Model::irq || resolved.policy->model == policy::Model::full;
        if (moves_queues && resolved.policy->nics_auto)
            occupancy.remarks.push_back(
                resolved.policy->name +
                ": its interfaces are those its sockets use, which is known when it runs");
    }
    for (const auto& problem : placements.problems)
        if (is_wanted(problem.policy))
            occupancy.remarks.push_back(
                fmt::format("{}: {}: {}", problem.policy, problem.subject, problem.message));
    return occupancy;
}

} // namespace affinityctl
