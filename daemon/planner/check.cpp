// SPDX-License-Identifier: Apache-2.0
#include "planner/check.hpp"

#include "base/glob.hpp"
#include "machine/near.hpp"
#include "planner/cpu_expr_eval.hpp"
#include "planner/matcher.hpp"
#include "policy/suggest.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace affinityd::planner {

namespace {

using policy::CpuExpr;
using policy::Diagnostic;
using policy::Policy;
using policy::Position;
using policy::Severity;
using Op = CpuExpr::Op;

std::string cpus_text(const CpuSet& cpus) { return (cpus.count() == 1 ? "CPU " : "CPUs ") + cpus.to_list(); }

class Checker {
  public:
    Checker(const topology::Topology& topology, const std::vector<netdev::Nic>& nics)
        : machine_{topology, nics, {}}, near_(machine::nic_cpus(machine_)) {
        for (const auto& nic : machine_.nics)
            nic_names_.push_back(nic.name);
    }

    void policy(const Policy& policy) {
        if (policy.model == policy::Model::none) return;
        const auto before = errors_;
        own_nics(policy);
        const auto cpus = placement(policy.placement);
        for (const auto& rule : policy.threads) {
            if (rule.leave) continue;
            // What a rule takes from its policy has been checked there.
            auto own = rule.placement;
            if (own.cpus_at == policy.placement.cpus_at) own.cpus.reset();
            if (own.near_at == policy.placement.near_at) own.near.reset();
            (void)placement(own);
        }
        if (cpus && claims(policy, *cpus) && errors_ == before) claim(policy, *cpus);
    }

    std::vector<Diagnostic> take() { return std::move(out_); }

  private:
    void add(Severity severity, const Position& at, std::size_t length, std::string message,
             std::string hint = {}) {
        if (severity == Severity::error) ++errors_;
        out_.push_back({.severity = severity,
                        .at = at,
                        .length = static_cast<unsigned>(length),
                        .message = std::move(message),
                        .hint = std::move(hint),
                        .source_line = {}});
    }

    void add(Severity severity, const Position& at, const CpuExpr& part, std::string message,
             std::string hint = {}) {
        Position place = at;
        place.column += static_cast<unsigned>(part.offset);
        add(severity, place, part.length, std::move(message), std::move(hint));
    }

    std::string known_nics() const {
        std::string text;
        for (const auto name : nic_names_)
            text += (text.empty() ? "" : ", ") + std::string(name);
        return text.empty() ? "there is none here" : "there are " + text;
    }

    std::string nic_hint(std::string_view name) const {
        const auto near = policy::did_you_mean(name, nic_names_);
        return near.empty() && nic_names_.size() <= 16 ? known_nics() : near;
    }

    /// Sets `own_` from the interfaces that the policy names. Which ones `auto` stands for depends on the
    /// running processes, so it may be any.
    void own_nics(const Policy& policy) {
        own_ = machine_.topology.online;
        if (policy.nics_auto) return;
        CpuSet found;
        for (const auto& pattern : policy.nics) {
            bool any = false;
            for (const auto& nic : machine_.nics) {
                if (!pattern.matches(nic.name)) continue;
                any = true;
                found |= near_.at(nic.name);
            }
            if (!any)
                add(Severity::warning, policy.nics_at, 1,
                    "'nics': no interface here is named " + policy::in_quotes(pattern.text()),
                    nic_hint(pattern.text()));
        }
        if (!found.empty()) own_ = std::move(found);
    }

    /// False if a part of the expression names something that the machine does not have; there is a finding
    /// then.
    bool parts(const CpuExpr& expr, const Position& at) {
        bool good = true;
        for (const auto& child : expr.children)
            good = parts(child, at) && good;
        if (!expr.children.empty()) return good;
        if (expr.op == Op::list) return list(expr, at);
        if (expr.op == Op::nic && !expr.name.empty()) return nic(expr, at);
        const auto cpus = evaluate(expr, machine_.topology, near_, own_);
        if (cpus) return true;
        add(Severity::error, at, expr, cpus.error().message, cpus.error().hint);
        return false;
    }

    bool list(const CpuExpr& expr, const Position& at) {
        const auto& topology = machine_.topology;
        const CpuSet present = topology.present | topology.online;
        const CpuSet missing = expr.ids - present;
        if (!missing.empty()) {
            add(Severity::error, at, expr,
                cpus_text(missing) + (missing.count() == 1 ? " does" : " do") + " not exist on this machine",
                "it has " + present.to_list());
            return false;
        }
        const CpuSet offline = expr.ids - topology.online;
        if (!offline.empty())
            add(Severity::warning, at, expr,
                cpus_text(offline) + (offline.count() == 1 ? " is" : " are") + " offline now");
        return true;
    }

    bool nic(const CpuExpr& expr, const Position& at) {
        if (std::ranges::any_of(nic_names_,
                                [&](std::string_view name) { return glob_match(expr.name, name); }))
            return true;
        add(Severity::warning, at, expr, "no interface here is named " + policy::in_quotes(expr.name),
            nic_hint(expr.name));
        return false;
    }

    /// The online CPUs of a placement; no value if it states none, or cannot be evaluated.
    std::optional<CpuSet> placement(const policy::Placement& placement) {
        if (placement.near && parts(*placement.near, placement.near_at)) {
            const auto near = evaluate(*placement.near, machine_.topology, near_, own_);
            if (near && !near->intersects(machine_.topology.online))
                add(Severity::warning, placement.near_at, *placement.near,
                    "'near' names no online CPU of this machine");
        }
        if (!placement.cpus || !parts(*placement.cpus, placement.cpus_at)) return std::nullopt;
        const auto cpus = evaluate(*placement.cpus, machine_.topology, near_, own_);
        if (!cpus) {
            add(Severity::error, placement.cpus_at, *placement.cpus, cpus.error().message, cpus.error().hint);
            return std::nullopt;
        }
        CpuSet online = *cpus & machine_.topology.online;
        if (!online.empty()) return online;
        // CPUs that are offline may come online while the daemon runs; a set that never holds a CPU is an
        // error.
        const bool is_offline = cpus->intersects(machine_.topology.present);
        add(is_offline ? Severity::warning : Severity::error, placement.cpus_at, *placement.cpus,
            "this set holds no online CPU of this machine", why_empty(*placement.cpus));
        return std::nullopt;
    }

    [[nodiscard]] std::string why_empty(const CpuExpr& expr) const {
        if (expr.op == Op::isolated) return "no CPU is isolated here";
        if (expr.op == Op::nohz_full) return "no CPU is nohz_full here";
        if (expr.op == Op::smt) return "no core here has a second hardware thread";
        return "online are " + machine_.topology.online.to_list();
    }

    /// True: it claims them for itself alone.
    bool claims(const Policy& policy, const CpuSet& cpus) {
        const CpuSet taken = cpus & claimed_;
        const auto owner =
            std::ranges::find_if(owners_, [&](const auto& other) { return other.second.intersects(taken); });
        const auto& at = policy.placement.cpus_at;
        const auto& expr = *policy.placement.cpus;
        if (policy.exclusive && !taken.empty())
            add(Severity::error, at, expr,
                cpus_text(taken) + " cannot be exclusive: " + policy::in_quotes(owner->first->name) +
                    " claims " + (taken.count() == 1 ? "it" : "them") + " too");
        else if (!taken.empty() && taken == cpus)
            add(Severity::error, at, expr,
                "no CPU is left: " + policy::in_quotes(owner->first->name) + " claims " + cpus_text(taken) +
                    " with 'exclusive: true'");
        if (policy.exclusive && cpus == machine_.topology.online)
            add(Severity::warning, at, expr, "'exclusive' on every online CPU leaves none to anybody else");
        return policy.exclusive;
    }

    /// Policies with errors are not in force and take nothing from those that follow.
    void claim(const Policy& policy, const CpuSet& cpus) {
        claimed_ |= cpus;
        owners_.emplace_back(&policy, cpus);
    }

    machine::Machine machine_;
    std::map<std::string, CpuSet, std::less<>> near_;
    std::vector<std::string_view> nic_names_; ///< of machine_
    CpuSet own_; ///< CPUs near the interfaces of the policy that is being checked
    CpuSet claimed_;
    std::size_t errors_ = 0;
    std::vector<std::pair<const Policy*, CpuSet>> owners_;
    std::vector<Diagnostic> out_;
};

/// Lineage among the given processes; the daemon knows it from its tasks under policy.
class Ancestors final : public Lineage {
  public:
    Ancestors(const std::vector<const inventory::ProcessFacts*>& processes, const policy::PolicySet& set)
        : set_(set) {
        for (const auto* process : processes)
            by_pid_.emplace(process->id().tid, process);
    }

    [[nodiscard]] std::vector<std::string>
    ancestor_policies(const inventory::ProcessFacts& process) const override {
        std::vector<std::string> names;
        int pid = process.parent();
        for (unsigned depth = 0; depth < max_depth && pid > 0; ++depth) {
            if (const auto matched = matched_.find(pid); matched != matched_.end())
                names.push_back(set_.policies[matched->second].name);
            const auto parent = by_pid_.find(pid);
            if (parent == by_pid_.end()) break;
            pid = parent->second->parent();
        }
        return names;
    }

    void set_policy(int pid, std::size_t policy) { matched_[pid] = policy; }

  private:
    static constexpr unsigned max_depth = 1000; // a hostile recording may have rings
    const policy::PolicySet& set_;
    std::unordered_map<int, const inventory::ProcessFacts*> by_pid_;
    std::unordered_map<int, std::size_t> matched_; ///< pid -> policy
};

} // namespace

std::vector<Diagnostic> check_on_machine(const policy::PolicySet& policies,
                                         const topology::Topology& topology,
                                         const std::vector<netdev::Nic>& nics) {
    Checker checker(topology, nics);
    for (const auto& policy : policies.policies)
        checker.policy(policy);
    return checker.take();
}

std::vector<Diagnostic> check_matches(const policy::PolicySet& policies,
                                      const std::vector<const inventory::ProcessFacts*>& processes) {
    const Matcher matcher(policies);
    Ancestors ancestors(processes, policies);
    std::vector<bool> is_matched(policies.policies.size());
    // A parent may come after its child in the list. Two rounds find a policy that is asked for by `parent`;
    // longer chains in the wrong order cost no more than a needless note.
    for (unsigned round = 0; round < 2; ++round) {
        for (const auto* process : processes) {
            const auto policy = matcher.match(*process, ancestors);
            if (!policy) continue;
            is_matched[*policy] = true;
            ancestors.set_policy(process->id().tid, *policy);
        }
    }
    std::vector<Diagnostic> notes;
    for (std::size_t at = 0; at < is_matched.size(); ++at) {
        const Policy& policy = policies.policies[at];
        if (!is_matched[at] && policy.model != policy::Model::irq)
            notes.push_back({.severity = Severity::note,
                             .at = policy.at,
                             .length = 1,
                             .message = "no process is matched by this policy now",
                             .hint = {},
                             .source_line = {}});
    }
    return notes;
}

} // namespace affinityd::planner
