// SPDX-License-Identifier: Apache-2.0
#include "planner/check.hpp"

#include "base/glob.hpp"
#include "planner/lanes.hpp"
#include "planner/matcher.hpp"
#include "planner/placements.hpp"
#include "planner/slots.hpp"
#include "policy/diagnostic.hpp"
#include "policy/set_check.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityd::planner {

namespace {

using policy::CpuExpr;
using policy::Diagnostic;
using policy::Policy;
using policy::Position;
using policy::Selector;
using policy::Severity;
using Field = policy::Condition::Field;
using Op = CpuExpr::Op;
using Processes = std::vector<const inventory::ProcessFacts*>;

std::string cpus_text(const CpuSet& cpus) { return (cpus.count() == 1 ? "CPU " : "CPUs ") + cpus.to_list(); }

class Checker {
  public:
    Checker(const machine::Machine& machine, const CheckedHere& here)
        : here_(here), machine_(machine), near_(machine::nic_cpus(machine)) {
        for (const auto& [name, cpus] : near_)
            nic_names_.push_back(name);
    }

    void policy(const Policy& policy) {
        if (policy.model == policy::Model::none) return;
        const auto errors = errors_;
        const auto wanted = wanted_.size();
        own_nics(policy);
        const auto cpus = placement(policy.placement);
        if (policy.rps) static_cast<void>(parts(*policy.rps, policy.rps_at));
        for (const auto& rule : policy.threads) {
            if (rule.leave) continue;
            for (const auto& name : rule.nics)
                if (std::ranges::none_of(nic_names_, [&](const auto& nic) { return name.matches(nic); }))
                    add(Severity::warning, rule.at, 1,
                        "no interface here is named " + policy::in_quotes(name.text()) +
                            ": these threads count as readers of those that serve their process",
                        nic_hint(name.text()));
            // Keys that a rule takes from its policy have been checked there.
            auto own = rule.placement;
            if (own.cpus_at == policy.placement.cpus_at) own.cpus.reset();
            if (own.near_at == policy.placement.near_at) own.near.reset();
            const auto of_rule = placement(own);
            const auto number = static_cast<std::size_t>(&rule - policy.threads.data()) + 1;
            if (of_rule) wanted_.push_back({&policy, &rule.placement, *of_rule, number});
            if (of_rule && cpus && policy.model == policy::Model::full && !of_rule->intersects(*cpus) &&
                std::ranges::none_of(rule.names, policy::matches_everything))
                add(Severity::note, own.cpus_at, *own.cpus,
                    fmt::format("these threads are not where the interrupts go: under 'affinity: full' these "
                                "go to the policy's cpus ({})",
                                cpus->to_list()),
                    "to have both there, give these CPUs to the policy, and the others to a last rule for "
                    "\"*\"");
        }
        if (cpus) wanted_.push_back({&policy, &policy.placement, *cpus});
        if (policy.exclusive != policy::Exclusive::no && !policy.placement.cpus)
            wanted_.push_back(
                {&policy, &policy.placement, machine_.topology.online - machine_.topology.isolated});
        // A policy with errors is not in force, and takes nothing from others.
        if (errors_ > errors)
            wanted_.erase(wanted_.begin() + static_cast<std::ptrdiff_t>(wanted), wanted_.end());
    }

    /// Checks a set whose policies have been checked one by one.
    void together(const policy::PolicySet& policies) {
        check_claims();
        check_overlaps();
        const auto placements = compile(policies, machine_, {});
        for (const auto& resolved : placements.policies) {
            check_counting(resolved);
            check_pairs(resolved);
        }
        for (const auto& resolved : placements.policies)
            for (const auto& lanes : resolved.nics)
                for (const auto& name : lanes.nics)
                    for (const auto& problem : interrupt_problems(resolved, machine_, *machine_.nic(name)))
                        add(Severity::warning, resolved.policy->nics_at, 1,
                            "'nics': " + name + ": " + problem.message, problem.hint);
        for (const auto& resolved : placements.policies)
            if (resolved.policy->model == policy::Model::process &&
                restricts_nothing(resolved, placements.online))
                add(Severity::note, resolved.policy->at, 1,
                    "it restricts nothing on this machine: each of its places has all online CPUs (" +
                        placements.online.to_list() + ")");
    }

    std::vector<Diagnostic> take() { return std::move(out_); }

  private:
    void add(Severity severity, const Position& at, std::size_t length, std::string message,
             std::string hint = {}) {
        if (severity == Severity::error) ++errors_;
        out_.push_back(policy::finding(severity, at, length, std::move(message), std::move(hint)));
    }

    void add(Severity severity, const Position& at, const CpuExpr& part, std::string message,
             std::string hint = {}) {
        Position place = at;
        place.column += static_cast<unsigned>(part.offset);
        add(severity, place, part.length, std::move(message), std::move(hint));
    }

    std::string nic_hint(std::string_view name) const {
        auto near = policy::did_you_mean(name, nic_names_);
        if (!near.empty() || nic_names_.size() > 16) return near;
        return nic_names_.empty() ? "there is none here"
                                  : fmt::format("there are {}", fmt::join(nic_names_, ", "));
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
                if (!nic.is_called([&](std::string_view name) { return pattern.matches(name); })) continue;
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

    /// False if a part of the expression that must be there names something that the machine does not have;
    /// there is a finding then. After '-' and '!' it is only noted: one file may be for machines of several
    /// sizes.
    bool parts(const CpuExpr& expr, const Position& at, bool is_needed = true) {
        bool good = true;
        for (const auto& child : expr.children) {
            const bool is_taken =
                expr.op == Op::complement || (expr.op == Op::subtract && &child == &expr.children.back());
            good = parts(child, at, is_needed && !is_taken) && good;
        }
        if (!expr.children.empty()) return good;
        if (expr.op == Op::list) return list(expr, at, is_needed);
        if (expr.op == Op::nic && !expr.name.empty()) return nic(expr, at, is_needed);
        const auto cpus = evaluate(expr, machine_.topology, near_, own_);
        if (cpus) return true;
        add(is_needed ? Severity::error : Severity::note, at, expr, cpus.error().message, cpus.error().hint);
        return !is_needed;
    }

    bool list(const CpuExpr& expr, const Position& at, bool is_needed) {
        const auto& topology = machine_.topology;
        const CpuSet present = topology.present | topology.online;
        const CpuSet missing = expr.ids - present;
        if (!missing.empty()) {
            add(is_needed ? Severity::error : Severity::note, at, expr,
                cpus_text(missing) + (missing.count() == 1 ? " does" : " do") + " not exist on this machine",
                "it has " + present.to_list());
            return !is_needed;
        }
        const CpuSet offline = expr.ids - topology.online;
        if (is_needed && !offline.empty())
            add(Severity::warning, at, expr,
                cpus_text(offline) + (offline.count() == 1 ? " is" : " are") + " offline now");
        return true;
    }

    bool nic(const CpuExpr& expr, const Position& at, bool is_needed) {
        if (std::ranges::any_of(nic_names_,
                                [&](std::string_view name) { return glob_match(expr.name, name); }))
            return true;
        add(is_needed ? Severity::warning : Severity::note, at, expr,
            "no interface here is named " + policy::in_quotes(expr.name), nic_hint(expr.name));
        return !is_needed;
    }

    /// The online CPUs of a placement; no value if it states none, or cannot be evaluated.
    std::optional<CpuSet> placement(const policy::Placement& placement) {
        const auto& topology = machine_.topology;
        const auto evaluated = [&](const CpuExpr& expr) {
            return evaluate(expr, topology, near_, own_).value_or(CpuSet()); // parts() has found no fault
        };
        if (placement.near && parts(*placement.near, placement.near_at) &&
            !evaluated(*placement.near).intersects(topology.online))
            add(Severity::warning, placement.near_at, *placement.near,
                "'near' names no online CPU of this machine");
        if (!placement.cpus || !parts(*placement.cpus, placement.cpus_at)) return std::nullopt;
        const CpuSet cpus = evaluated(*placement.cpus);
        if (cpus.intersects(topology.online)) return cpus & topology.online;
        // CPUs that are offline may come online while the daemon runs; a set that never holds a CPU is an
        // error.
        const bool may_come =
            cpus.intersects(topology.present) || policy::has_word(*placement.cpus, Op::pods);
        add(may_come ? Severity::warning : Severity::error, placement.cpus_at, *placement.cpus,
            "this set holds no online CPU of this machine", why_empty(*placement.cpus));
        return std::nullopt;
    }

    /// A program that asks for its CPUs again later would find those of one slot.
    void check_counting(const ResolvedPolicy& resolved) {
        const auto counting = here_.counting.find(resolved.policy->name);
        if (counting == here_.counting.end() || resolved.distributions.empty()) return;
        const auto is_narrow = [&](const Slot& slot) { return !slot.mask.contains(resolved.allowed); };
        if (std::ranges::any_of(resolved.distributions.front(), is_narrow))
            add(Severity::note, resolved.policy->at, 1,
                fmt::format(
                    "its processes use {}, which asks again and again how many CPUs there are, and 'bind' "
                    "gives each task fewer than 'cpus'",
                    counting->second),
                "write bind: set, and bind only the threads that you name (affinityd.policy(5), PROGRAMS "
                "THAT "
                "COUNT THEIR CPUS)");
    }

    void check_pairs(const ResolvedPolicy& resolved) {
        const auto& rules = resolved.policy->threads;
        for (std::size_t i = 0; i < resolved.distributions.size(); ++i)
            if (resolved.placements[i].smt == policy::Smt::pair &&
                std::ranges::all_of(resolved.distributions[i],
                                    [](const Slot& slot) { return slot.cpus.count() == 1; }))
                add(Severity::note, i == 0 ? resolved.policy->at : rules[i - 1].at, 1,
                    "no core here has two CPUs in 'cpus': 'smt: pair' gives each task a core");
    }

    [[nodiscard]] std::string why_empty(const CpuExpr& expr) const {
        if (expr.op == Op::isolated) return "no CPU is isolated here";
        if (expr.op == Op::nohz_full) return "no CPU is nohz_full here";
        if (expr.op == Op::pods) return "no container has CPUs for itself now";
        if (expr.op == Op::smt) return "no core here has a second hardware thread";
        return "online are " + machine_.topology.online.to_list();
    }

    /// Each claim against those before it, and against policies in force that would have no CPU left: of two
    /// at odds the newcomer is refused, or else the later file.
    void check_claims() {
        std::vector<const Wanted*> claims;
        for (const auto& wanted : wanted_)
            if (wanted.policy->exclusive != policy::Exclusive::no && wanted.rule == 0)
                claims.push_back(&wanted);
        std::ranges::stable_sort(claims, {}, [&](const Wanted* claim) {
            return std::pair(here_.newcomers.contains(claim->policy->name), claim->policy->at.file);
        });
        for (const auto* claim : claims) {
            const auto& [policy, placement, cpus, rule] = *claim;
            const CpuSet taken = cpus & claimed_;
            std::string fault;
            if (!taken.empty())
                fault = cpus_text(taken) +
                        " cannot be exclusive: " + policy::in_quotes(owner(taken).first->name) + " claims " +
                        (taken.count() == 1 ? "it" : "them") + " too";
            else if ((claimed_ | cpus).contains(machine_.topology.online))
                fault = "'exclusive' on every online CPU leaves none to all other programs";
            else if (const auto* other = left_without(*policy, claimed_ | cpus); other != nullptr)
                fault = cpus_text(cpus) + " cannot be exclusive: " + policy::in_quotes(other->name) +
                        ", which is in force, has no other CPUs";
            if (fault.empty()) {
                claimed_ |= cpus;
                owners_.emplace_back(policy, cpus);
            } else if (placement->cpus) {
                add(Severity::error, placement->cpus_at, *placement->cpus, std::move(fault));
            } else {
                add(Severity::error, policy->at, 1, std::move(fault), "name some CPUs in 'cpus'");
            }
        }
    }

    /// The first policy in force that a newcomer's claim would leave without a CPU; nullptr: there is none.
    [[nodiscard]] const Policy* left_without(const Policy& claimant, const CpuSet& claimed) const {
        if (!here_.newcomers.contains(claimant.name)) return nullptr;
        const auto found = std::ranges::find_if(wanted_, [&](const Wanted& other) {
            return other.rule == 0 && other.policy->exclusive == policy::Exclusive::no &&
                   !here_.newcomers.contains(other.policy->name) && claimed.contains(other.cpus) &&
                   !claimed_.contains(other.cpus);
        });
        return found == wanted_.end() ? nullptr : found->policy;
    }

    /// Checks the wishes of others for claimed CPUs, wherever the claim stands: it is met first.
    void check_overlaps() {
        for (const auto& [policy, placement, cpus, rule] : wanted_) {
            const CpuSet taken = cpus & claimed_;
            if (policy->exclusive != policy::Exclusive::no || taken.empty()) continue;
            const auto& claimant = *owner(taken).first;
            const auto& claim_at = claimant.placement.cpus_at;
            const auto who =
                fmt::format("{} claims {} with 'exclusive' ({}:{}:{})", policy::in_quotes(claimant.name),
                            cpus_text(taken), claim_at.file, claim_at.line, claim_at.column);
            if (taken != cpus)
                add(Severity::warning, placement->cpus_at, *placement->cpus,
                    fmt::format("not all of these CPUs are used: {}", who),
                    fmt::format("its tasks get {}", cpus_text(cpus - taken)));
            else if (rule > 0)
                add(Severity::warning, placement->cpus_at, *placement->cpus,
                    fmt::format("no CPU is left to this thread rule: {}", who),
                    "its threads get the CPUs of the policy");
            else
                add(Severity::error, placement->cpus_at, *placement->cpus,
                    fmt::format("no CPU is left: {}", who),
                    "name others, too, or leave out 'exclusive' there");
        }
    }

    /// The first who has claimed any of these CPUs.
    [[nodiscard]] const std::pair<const Policy*, CpuSet>& owner(const CpuSet& taken) const {
        return *std::ranges::find_if(owners_,
                                     [&](const auto& other) { return other.second.intersects(taken); });
    }

    /// CPUs that a policy, or one of its thread rules, states.
    struct Wanted {
        const Policy* policy;
        const policy::Placement* placement;
        CpuSet cpus;
        std::size_t rule = 0; ///< from 1; 0: the policy's own placement
    };

    const CheckedHere& here_;
    const machine::Machine& machine_;
    std::map<std::string, CpuSet, std::less<>> near_;
    std::vector<std::string_view> nic_names_; ///< of machine_
    CpuSet own_; ///< CPUs near the interfaces of the policy that is being checked
    std::vector<Wanted> wanted_;
    CpuSet claimed_;
    std::size_t errors_ = 0;
    std::vector<std::pair<const Policy*, CpuSet>> owners_; ///< of `claimed_`
    std::vector<Diagnostic> out_;
};

/// Lineage among the given processes; the daemon knows it from its tasks under policy.
class Ancestors final : public Lineage {
  public:
    Ancestors(const Processes& processes, const policy::PolicySet& set) : set_(set) {
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

/// The policies that take the processes which this one would match; "": none does.
std::string takers_of(const Policy& policy, const policy::PolicySet& set, const Processes& processes,
                      const Matcher& matcher, const Lineage& lineage) {
    std::map<std::string, std::size_t> found;
    for (const auto* process : processes)
        if (!policy.everything_else && holds(policy.match, *process, lineage))
            if (const auto taker = matcher.match(*process, lineage)) ++found[set.policies[*taker].name];
    std::string text;
    for (const auto& [name, count] : found)
        text += (text.empty() ? "" : ", ") + policy::in_quotes(name) + " takes " + std::to_string(count) +
                (count == 1 ? " process" : " processes") + " that it would match";
    return text.empty() ? text : text + ": give it a higher priority, or another match";
}

/// A unit or user that the selector names and that is not here, while another of a similar name is; "": none.
std::string misspelt(const Selector& selector, const Processes& processes, const KnownNames& known) {
    for (const auto& child : selector.children)
        if (auto text = misspelt(child, processes, known); !text.empty()) return text;
    const auto& condition = selector.condition;
    const bool is_unit = condition.field == Field::unit;
    if (selector.op != Selector::Op::test || (!is_unit && condition.field != Field::user)) return {};
    const auto& listed = is_unit ? known.units : known.users;
    std::set<std::string, std::less<>> names(listed.begin(), listed.end());
    for (const auto* process : processes)
        if (is_unit)
            std::ranges::copy(unit_names(*process), std::inserter(names, names.end()));
        else
            names.insert(process->user());
    for (const auto& pattern : condition.patterns) {
        const std::string_view text = pattern.text();
        if (!pattern.is_literal() || names.contains(text)) continue;
        // The type of a unit is no part of the likeness: nearly all are ".service".
        const auto type = is_unit ? text.substr(std::min(text.rfind('.'), text.size())) : std::string_view();
        std::vector<std::string_view> words;
        for (const std::string_view name : names)
            if (name.ends_with(type)) words.push_back(name.substr(0, name.size() - type.size()));
        const auto meant = policy::nearest_word(text.substr(0, text.size() - type.size()), words);
        if (!meant.empty())
            return fmt::format("there is no {} {} here: did you mean '{}{}'?", is_unit ? "unit" : "user",
                               policy::in_quotes(text), meant, type);
    }
    return {};
}

} // namespace

std::vector<Diagnostic> check_on_machine(const policy::PolicySet& policies, const machine::Machine& machine,
                                         const CheckedHere& here) {
    Checker checker(machine, here);
    for (const auto& policy : policies.policies)
        checker.policy(policy);
    checker.together(policies);
    return checker.take();
}

Matches check_matches(const policy::PolicySet& policies, const Processes& processes,
                      const KnownNames& known) {
    const Matcher matcher(policies);
    Ancestors ancestors(processes, policies);
    Matches matches;
    // A parent may come after its child in the list. Two rounds find a policy that is asked for by `parent`;
    // longer chains in the wrong order cost no more than a needless note.
    constexpr std::size_t few = 16;
    for (unsigned round = 0; round < 2; ++round) {
        matches.processes.assign(policies.policies.size(), 0);
        matches.pids.assign(policies.policies.size(), {});
        matches.units.assign(policies.policies.size(), {});
        for (const auto* process : processes) {
            const auto policy = matcher.match(*process, ancestors);
            if (!policy) continue;
            ++matches.processes[*policy];
            if (matches.pids[*policy].size() < few) {
                matches.pids[*policy].push_back(process->id().tid);
                for (auto& unit : unit_names(*process))
                    matches.units[*policy].insert(std::move(unit));
            }
            ancestors.set_policy(process->id().tid, *policy);
        }
    }
    for (std::size_t at = 0; at < policies.policies.size(); ++at) {
        const Policy& policy = policies.policies[at];
        if (matches.processes[at] > 0 || policy.model == policy::Model::irq) continue;
        auto hint = takers_of(policy, policies, processes, matcher, ancestors);
        if (hint.empty()) hint = misspelt(policy.match, processes, known);
        if (hint.empty()) hint = "affinityctl explain PID names the condition that a process does not meet";
        std::string message = "no process is matched by this policy now";
        if (policy.exclusive == policy::Exclusive::always)
            message += ", and all others are kept off its CPUs all the same (exclusive: always)";
        matches.notes.push_back(
            policy::finding(Severity::note, policy.at, 1, std::move(message), std::move(hint)));
    }
    return matches;
}

} // namespace affinityd::planner
