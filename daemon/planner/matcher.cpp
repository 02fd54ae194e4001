// SPDX-License-Identifier: Apache-2.0
#include "planner/matcher.hpp"

#include "policy/cgroup_path.hpp"
#include "policy/policy.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityd::planner {

namespace {

using policy::Condition;
using policy::Selector;
using Field = Condition::Field;

constexpr unsigned dearest = 3;
constexpr std::size_t full_id = 64; ///< digits of a container's id

/// The cost of reading the fact. 0: it is known already; 1: a small file; 2: a walk over all descriptors; 3:
/// what the process itself may keep from being read.
unsigned cost(const Selector& selector) {
    if (selector.op != Selector::Op::test) {
        unsigned worst = 0;
        for (const auto& child : selector.children)
            worst = std::max(worst, cost(child));
        return worst;
    }
    switch (selector.condition.field) {
    case Field::comm:
    case Field::kthread:
        return 0;
    case Field::pod: // a file of each container
    case Field::pod_namespace:
    case Field::listen:
        return 2;
    case Field::cmdline:
        return dearest;
    default:
        return 1;
    }
}

bool any_pattern(const Condition& condition, std::string_view text) {
    return std::ranges::any_of(condition.patterns,
                               [&](const auto& pattern) { return pattern.matches(text); });
}

bool any_port(const Condition& condition, const std::vector<std::uint16_t>& ports) {
    return std::ranges::any_of(ports, [&](std::uint16_t port) {
        return std::ranges::any_of(
            condition.ports, [&](const auto& range) { return range.first <= port && port <= range.second; });
    });
}

/// The process that is asked about.
struct Question {
    const inventory::ProcessFacts& process;
    const Lineage& lineage;
    /// A map around the condition names the process's container: paths and ports inside it count, too.
    bool is_in_container = false;

    [[nodiscard]] Question inside(const Selector& selector) const;
};

policy::CgroupNames cgroup_names(const Condition& condition, const inventory::ProcessFacts& process) {
    return condition.user_units ? policy::parse_cgroup_path(process.cgroup())
                                : policy::system_cgroup_names(process.cgroup());
}

/// A unit and the slices around it.
std::vector<std::string> units_of(policy::CgroupNames names) {
    std::vector<std::string> all = std::move(names.slices);
    if (!names.unit.empty()) all.insert(all.begin(), std::move(names.unit));
    return all;
}

/// A container is named by its full id (by its name, for LXC), or by the twelve digits that its tools print.
std::vector<std::string> texts_of(const policy::CgroupNames& names) {
    if (names.container_id.empty()) return {};
    std::vector<std::string> texts{names.container_id, names.container_runtime + ":" + names.container_id};
    if (names.container_id.size() > 12) texts.push_back(names.container_id.substr(0, 12));
    return texts;
}

/// Never of a container that a user made: its id may be another's.
std::vector<std::string> pod_of(Field field, const inventory::ProcessFacts& process) {
    const auto id = policy::system_cgroup_names(process.cgroup()).container_id;
    if (id.size() != full_id) return {};
    const auto& pod = process.pod(id);
    if (pod.name.empty()) return {};
    return {field == Field::pod ? pod.name : pod.space};
}

std::vector<std::string> texts_of(const Condition& condition, const Question& asked) {
    const auto& process = asked.process;
    switch (condition.field) {
    case Field::comm:
        return {process.comm()};
    case Field::exe:
        return {process.exe()};
    case Field::cmdline:
        return {process.cmdline()};
    case Field::unit:
        return units_of(cgroup_names(condition, process));
    case Field::cgroup:
        return {process.cgroup()};
    case Field::user:
        return {process.user(), std::to_string(process.uid())};
    case Field::group:
        return {process.group(), std::to_string(process.gid())};
    case Field::container:
        return texts_of(cgroup_names(condition, process));
    case Field::pod:
    case Field::pod_namespace:
        return pod_of(condition.field, process);
    case Field::parent:
        return asked.lineage.ancestor_policies(process);
    default:
        return {};
    }
}

bool any_text(const Condition& condition, const Question& asked) {
    return std::ranges::any_of(texts_of(condition, asked),
                               [&](const std::string& text) { return any_pattern(condition, text); });
}

/// True if the selector says which container a process is in, where it must hold, and the process is.
bool wants_its_container(const Selector& selector, const Question& asked) {
    if (selector.op == Selector::Op::test) {
        const auto field = selector.condition.field;
        return (field == Field::container || field == Field::pod || field == Field::pod_namespace) &&
               any_text(selector.condition, asked);
    }
    return selector.op == Selector::Op::all && std::ranges::any_of(selector.children, [&](const auto& child) {
               return wants_its_container(child, asked);
           });
}

Question Question::inside(const Selector& selector) const {
    return {process, lineage, is_in_container || wants_its_container(selector, *this)};
}

bool test(const Condition& condition, const Question& asked) {
    const auto& process = asked.process;
    switch (condition.field) {
    case Field::exe:
        return any_pattern(condition, process.exe()) && (process.is_exe_true() || asked.is_in_container);
    case Field::kthread:
        return process.is_kernel() == condition.flag;
    case Field::listen:
        return any_port(condition, process.listen_ports()) ||
               (asked.is_in_container && any_port(condition, process.foreign_ports()));
    default:
        return any_text(condition, asked);
    }
}

std::string joined(const auto& parts) { return fmt::format("{}", fmt::join(parts, ", ")); }

std::string wanted_text(const Condition& condition) {
    std::vector<std::string> parts;
    for (const auto& pattern : condition.patterns)
        parts.push_back(pattern.text());
    for (const auto& [low, high] : condition.ports)
        parts.push_back(low == high ? fmt::to_string(low) : fmt::format("{}-{}", low, high));
    if (condition.field == Field::kthread) parts.emplace_back(condition.flag ? "true" : "false");
    return joined(parts);
}

std::string and_more(std::string text, const std::string& more) {
    return text.empty() ? more : std::move(text) + ", " + more;
}

/// The values that the process has, and those that look alike but do not count.
std::string found_text(const Condition& condition, const Question& asked) {
    const auto& process = asked.process;
    switch (condition.field) {
    case Field::kthread:
        return process.is_kernel() ? "true" : "false";
    case Field::exe:
        if (!any_pattern(condition, process.exe())) return process.exe();
        return process.exe() + " by a mount of its own: another file than the one that is there";
    case Field::listen: {
        auto text = joined(process.listen_ports());
        if (!any_port(condition, process.foreign_ports())) return text;
        return and_more(text, joined(process.foreign_ports()) + " in another network namespace");
    }
    case Field::unit:
    case Field::container: {
        const auto text = joined(texts_of(condition, asked));
        auto users = condition;
        users.user_units = true;
        if (!any_text(users, asked)) return text;
        const auto names = policy::parse_cgroup_path(process.cgroup());
        const auto& name = condition.field == Field::unit ? names.unit : names.container_id;
        return and_more(text, name + " by a name that is not the system's (user-units)");
    }
    default:
        return joined(texts_of(condition, asked));
    }
}

bool is_met(const Selector& selector, const Question& asked);

/// The first child, in order of cost, for which `is_met` is `value`; null if there is none.
const Selector* first_child(const Selector& selector, bool value, const Question& asked) {
    const auto inside = asked.inside(selector);
    for (unsigned level = 0; level <= dearest; ++level)
        for (const auto& child : selector.children)
            if (cost(child) == level && is_met(child, inside) == value) return &child;
    return nullptr;
}

bool is_met(const Selector& selector, const Question& asked) {
    if (selector.op == Selector::Op::test) return test(selector.condition, asked);
    const bool deciding = selector.op != Selector::Op::all; // a child that does not hold decides there
    const bool is_decided = first_child(selector, deciding, asked) != nullptr;
    return is_decided == (selector.op == Selector::Op::any);
}

/// The chance of a selector to hold, without arguments, ports and ancestors.
enum class Chance { no, some, sure };

Chance chance(const Selector& selector, const Question& asked) {
    if (selector.op == Selector::Op::test) {
        const auto field = selector.condition.field;
        if (field == Field::cmdline || field == Field::listen || field == Field::parent) return Chance::some;
        return test(selector.condition, asked) ? Chance::sure : Chance::no;
    }
    const auto inside = asked.inside(selector);
    const bool needs_all = selector.op == Selector::Op::all;
    auto result = needs_all ? Chance::sure : Chance::no;
    for (const auto& child : selector.children) {
        const auto one = chance(child, inside);
        result = needs_all ? std::min(result, one) : std::max(result, one);
        if (result == (needs_all ? Chance::no : Chance::sure)) break; // the rest need not be read
    }
    if (selector.op != Selector::Op::none || result == Chance::some) return result;
    return result == Chance::sure ? Chance::no : Chance::sure;
}

void each_condition(const Selector& selector, const auto& take) {
    if (selector.op == Selector::Op::test) take(selector.condition);
    for (const auto& child : selector.children)
        each_condition(child, take);
}

void sort_once(auto& values) {
    std::ranges::sort(values);
    const auto repeated = std::ranges::unique(values);
    values.erase(repeated.begin(), repeated.end());
}

/// False: it says in `verdict` which condition decided against the process.
bool decide(const Selector& selector, const Question& asked, Verdict& verdict) {
    if (is_met(selector, asked)) return true;
    if (selector.op == Selector::Op::all)
        return decide(*first_child(selector, false, asked), asked.inside(selector), verdict);
    const auto& condition = selector.condition;
    if (selector.op == Selector::Op::test) {
        verdict.field = policy::field_name(condition.field);
        verdict.wanted = wanted_text(condition);
        verdict.found = found_text(condition, asked);
    } else {
        const bool none = selector.op == Selector::Op::none;
        verdict.field = none ? "not" : "any";
        verdict.wanted = none ? "none of its conditions to hold" : "one of its conditions to hold";
        std::vector<std::string> facts;
        each_condition(none ? *first_child(selector, true, asked) : selector, [&](const Condition& one) {
            facts.push_back(fmt::format("{} \"{}\"", policy::field_name(one.field), found_text(one, asked)));
        });
        sort_once(facts);
        verdict.found = joined(facts);
    }
    return false;
}

/// The conditions that must hold if the selector is to hold: itself, or the children of each `all`.
void collect_required(const Selector& selector, std::vector<const Condition*>& into) {
    if (selector.op == Selector::Op::test) into.push_back(&selector.condition);
    if (selector.op != Selector::Op::all) return;
    for (const auto& child : selector.children)
        collect_required(child, into);
}

/// True if the selector says `kthread: true` where it must hold.
bool asks_for_kernel_threads(const Selector& selector) {
    std::vector<const Condition*> required;
    collect_required(selector, required);
    return std::ranges::any_of(required, [](const Condition* condition) {
        return condition->field == Condition::Field::kthread && condition->flag;
    });
}

} // namespace

std::vector<std::string> unit_names(const inventory::ProcessFacts& process) {
    return units_of(policy::parse_cgroup_path(process.cgroup()));
}

bool holds(const Selector& selector, const inventory::ProcessFacts& process, const Lineage& lineage) {
    return is_met(selector, {process, lineage});
}

void Matcher::Index::collect(std::string_view text, std::vector<std::size_t>& into) const {
    if (const auto found = literal.find(text); found != literal.end())
        into.insert(into.end(), found->second.begin(), found->second.end());
    for (const auto& [pattern, policy] : patterns)
        if (pattern.matches(text)) into.push_back(policy);
}

Matcher::Matcher(const policy::PolicySet& set) : set_(&set) {
    for (std::size_t i = 0; i < set.policies.size(); ++i)
        add(i);
    sort_once(ports_);
}

void Matcher::add(std::size_t policy) {
    const auto& selector = set_->policies[policy].match;
    bool is_late = false;
    each_condition(selector, [&](const Condition& condition) {
        const auto field = condition.field;
        is_late |= field == Field::cmdline || field == Field::parent;
        asks_for_users_ |= field == Field::user || field == Field::group;
        ports_.insert(ports_.end(), condition.ports.begin(), condition.ports.end());
    });
    if (is_late) late_.push_back(policy);
    std::vector<const Condition*> required;
    collect_required(selector, required);
    for (auto [field, index] : {std::pair{Field::comm, &by_comm_}, std::pair{Field::unit, &by_unit_},
                                std::pair{Field::exe, &by_exe_}}) {
        const auto found = std::ranges::find(required, field, &Condition::field);
        if (found == required.end()) continue;
        for (const auto& pattern : (*found)->patterns) {
            if (!pattern.is_literal()) {
                index->patterns.emplace_back(pattern, policy);
                continue;
            }
            index->literal[pattern.text()].push_back(policy);
            if (!pattern.kept().empty()) index->literal[pattern.kept()].push_back(policy);
        }
        return;
    }
    always_.push_back(policy);
}

std::optional<std::size_t> Matcher::match(const inventory::ProcessFacts& process,
                                          const Lineage& lineage) const {
    std::vector<std::size_t> candidates = always_;
    if (!by_comm_.empty()) by_comm_.collect(process.comm(), candidates);
    if (!by_unit_.empty())
        for (const auto& name : unit_names(process))
            by_unit_.collect(name, candidates);
    if (!by_exe_.empty()) by_exe_.collect(process.exe(), candidates);
    sort_once(candidates);
    for (const std::size_t i : candidates) {
        const auto& policy = set_->policies[i];
        if (process.is_kernel() && !asks_for_kernel_threads(policy.match)) continue;
        if (holds(policy.match, process, lineage)) return i;
    }
    return std::nullopt;
}

bool Matcher::may_want_later(const inventory::ProcessFacts& process, const Lineage& lineage,
                             std::optional<std::size_t> now) const {
    return std::ranges::any_of(late_, [&](std::size_t i) {
        if (now && i >= *now) return false;
        const auto& match = set_->policies[i].match;
        return (!process.is_kernel() || asks_for_kernel_threads(match)) &&
               chance(match, {process, lineage}) != Chance::no;
    });
}

std::vector<Verdict> Matcher::explain(const inventory::ProcessFacts& process, const Lineage& lineage) const {
    std::vector<Verdict> verdicts;
    for (std::size_t i = 0; i < set_->policies.size(); ++i) {
        const auto& policy = set_->policies[i];
        auto& verdict = verdicts.emplace_back(Verdict{.policy = i});
        if (process.is_kernel() && !asks_for_kernel_threads(policy.match)) {
            verdict.field = "kthread";
            verdict.wanted = "true";
            verdict.found = "a kernel thread, which only policies with kthread: true want";
        } else {
            verdict.matched = decide(policy.match, {process, lineage}, verdict);
        }
        if (verdict.matched) break;
    }
    return verdicts;
}

std::optional<std::size_t> Matcher::thread_rule(const policy::Policy& policy, std::string_view name,
                                                unsigned index) {
    for (std::size_t i = 0; i < policy.threads.size(); ++i) {
        const auto& rule = policy.threads[i];
        if (rule.is_for_joined_only()) continue;
        if (rule.index && (index < rule.index->first || index > rule.index->second)) continue;
        if (rule.names.empty() ||
            std::ranges::any_of(rule.names, [&](const auto& p) { return p.matches(name); }))
            return i;
    }
    return std::nullopt;
}

bool may_join(const policy::Policy& policy, std::string_view slot) {
    return std::ranges::find(policy.allow_join, slot) != policy.allow_join.end();
}

bool is_in_force(const policy::Policy& policy, const Joined* joined) {
    if (joined == nullptr || joined->policy != policy.name) return false;
    return joined->slot.empty() ? joined->serves && may_join(policy, policy::arrivals_slot)
                                : may_join(policy, joined->slot);
}

std::optional<std::size_t> rule_of(const policy::Policy& policy, std::string_view name, unsigned index,
                                   const Joined* joined) {
    if (is_in_force(policy, joined) && !joined->slot.empty()) {
        const auto found = std::ranges::find(policy.threads, joined->slot, &policy::ThreadRule::slot);
        if (found != policy.threads.end()) return static_cast<std::size_t>(found - policy.threads.begin());
    }
    return Matcher::thread_rule(policy, name, index);
}

} // namespace affinityd::planner
