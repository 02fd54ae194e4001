// SPDX-License-Identifier: Apache-2.0
#include "planner/matcher.hpp"

#include "planner/condition.hpp"

#include <algorithm>
#include <initializer_list>

namespace affinityd::planner {

namespace {

using policy::Condition;
using policy::Selector;

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

void collect_ports(const Selector& selector, Matcher::PortRanges& into) {
    if (selector.op == Selector::Op::test)
        into.insert(into.end(), selector.condition.ports.begin(), selector.condition.ports.end());
    for (const auto& child : selector.children)
        collect_ports(child, into);
}

/// True if the selector has a condition on one of these.
bool asks_for(const Selector& selector, std::initializer_list<Condition::Field> fields) {
    if (selector.op == Selector::Op::test)
        return std::ranges::find(fields, selector.condition.field) != fields.end();
    return std::ranges::any_of(selector.children, [&](const auto& child) { return asks_for(child, fields); });
}

/// The texts that a pattern without wildcards matches.
template <class Index>
void add_literal(Index& index, const policy::Pattern& pattern, std::size_t policy) {
    index.literal[pattern.text()].push_back(policy);
    if (!pattern.kept().empty()) index.literal[pattern.kept()].push_back(policy);
}

} // namespace

void Matcher::Index::collect(std::string_view text, std::vector<std::size_t>& into) const {
    if (const auto found = literal.find(text); found != literal.end())
        into.insert(into.end(), found->second.begin(), found->second.end());
    for (const auto& [pattern, policy] : patterns)
        if (pattern.matches(text)) into.push_back(policy);
}

Matcher::Matcher(const policy::PolicySet& set) : set_(&set) {
    for (std::size_t i = 0; i < set.policies.size(); ++i)
        add(i);
    std::ranges::sort(ports_);
    const auto repeated = std::ranges::unique(ports_);
    ports_.erase(repeated.begin(), repeated.end());
}

void Matcher::add(std::size_t policy) {
    const auto& selector = set_->policies[policy].match;
    if (asks_for(selector, {Field::cmdline, Field::parent})) late_.push_back(policy);
    collect_ports(selector, ports_);
    asks_for_users_ |= asks_for(selector, {Field::user, Field::group});
    std::vector<const Condition*> required;
    collect_required(selector, required);
    const auto pick = [&](Field field) -> const Condition* {
        const auto found = std::ranges::find(required, field, &Condition::field);
        return found == required.end() ? nullptr : *found;
    };
    for (auto [field, index] : {std::pair{Field::comm, &by_comm_}, std::pair{Field::unit, &by_unit_},
                                std::pair{Field::exe, &by_exe_}}) {
        const Condition* condition = pick(field);
        if (condition == nullptr) continue;
        for (const auto& pattern : condition->patterns) {
            if (pattern.is_literal())
                add_literal(*index, pattern, policy);
            else
                index->patterns.emplace_back(pattern, policy);
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
    if (candidates.empty()) return std::nullopt;
    std::ranges::sort(candidates);
    const auto repeated = std::ranges::unique(candidates);
    candidates.erase(repeated.begin(), repeated.end());
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
        return (!process.is_kernel() || asks_for_kernel_threads(match)) && may_hold(match, process, lineage);
    });
}

std::vector<Verdict> Matcher::explain(const inventory::ProcessFacts& process, const Lineage& lineage) const {
    std::vector<Verdict> verdicts;
    for (std::size_t i = 0; i < set_->policies.size(); ++i) {
        const auto& policy = set_->policies[i];
        Verdict verdict{.policy = i, .matched = false, .field = {}, .wanted = {}, .found = {}};
        if (process.is_kernel() && !asks_for_kernel_threads(policy.match)) {
            verdict.field = "kthread";
            verdict.wanted = "true";
            verdict.found = "a kernel thread, which only policies with kthread: true want";
        } else if (const auto failure = first_failure(policy.match, process, lineage)) {
            verdict.field = failure->field;
            verdict.wanted = failure->wanted;
            verdict.found = failure->found;
        } else {
            verdict.matched = true;
        }
        verdicts.push_back(std::move(verdict));
        if (verdicts.back().matched) break;
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

} // namespace affinityd::planner
