// SPDX-License-Identifier: Apache-2.0
#include "policy/set_check.hpp"

#include "policy/order.hpp"
#include "policy/suggest.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace affinityd::policy {

namespace {

using Field = Condition::Field;

class Checker {
  public:
    Checker(const PolicySet& set, std::vector<Diagnostic>& out) : set_(set), out_(out) {
        for (const auto& policy : set.policies)
            names_.push_back(policy.name);
    }

    void parents() {
        for (const auto& policy : set_.policies)
            parents_of(policy.match);
        for (const auto& policy : set_.policies)
            ring(policy);
    }

    void reach() {
        // Policies by the one test they consist of; only those can be compared for certain at no cost.
        std::unordered_map<std::string, const Policy*> taken;
        const Policy* everything = nullptr;
        for (const auto& policy : set_.policies) {
            if (policy.model == Model::irq && policy.names_interrupts()) continue; // they are what it is for
            if (everything != nullptr) {
                shadowed(policy, *everything);
                continue;
            }
            if (policy.match.op == Selector::Op::all && policy.match.children.empty()) everything = &policy;
            const auto key = canonical(policy.match);
            const auto [at, fresh] = taken.try_emplace(key, &policy);
            if (!fresh && !policy.everything_else) shadowed(policy, *at->second);
        }
    }

  private:
    void add(Severity severity, const Position& at, unsigned length, std::string message, std::string hint) {
        out_.push_back({.severity = severity,
                        .at = at,
                        .length = length,
                        .message = std::move(message),
                        .hint = std::move(hint),
                        .source_line = {}});
    }

    /// No value: it names a policy; else which might be meant. Comparing one with all others takes some time,
    /// so that is done for some only.
    std::optional<std::string> fault_of_parent(const Pattern& pattern) {
        constexpr std::size_t most_guesses = 32;
        const auto is_meant = [&](std::string_view name) { return pattern.matches(name); };
        if (std::ranges::any_of(names_, is_meant)) return std::nullopt;
        return ++guesses_ > most_guesses ? std::string() : did_you_mean(pattern.text(), names_);
    }

    void parents_of(const Selector& selector) {
        for (const auto& child : selector.children)
            parents_of(child);
        if (selector.op != Selector::Op::test || selector.condition.field != Field::parent) return;
        for (const auto& pattern : selector.condition.patterns) {
            const auto [known, is_new] = parents_.try_emplace(pattern.text());
            if (is_new) known->second = fault_of_parent(pattern);
            if (!known->second) continue;
            add(Severity::warning, selector.condition.at, 6,
                "'parent': no policy is named " + in_quotes(pattern.text()), *known->second);
        }
    }

    /// Policies of which a process's ancestor must be one before this one can match; only those that nothing
    /// gets around.
    std::vector<const Condition*> required(const Selector& selector) const {
        std::vector<const Condition*> found;
        if (selector.op == Selector::Op::test && selector.condition.field == Field::parent)
            found.push_back(&selector.condition);
        const bool every = selector.op == Selector::Op::all ||
                           (selector.op == Selector::Op::any && selector.children.size() == 1);
        for (std::size_t at = 0; every && at < selector.children.size(); ++at)
            std::ranges::copy(required(selector.children[at]), std::back_inserter(found));
        return found;
    }

    /// Follows `parent` while it names exactly one policy; back at the start, no process can ever be the
    /// first.
    void ring(const Policy& start) {
        const Policy* at = &start;
        for (std::size_t steps = 0; steps <= set_.policies.size(); ++steps) {
            const auto conditions = required(at->match);
            if (conditions.empty() || conditions.front()->patterns.size() != 1) return;
            const auto& pattern = conditions.front()->patterns.front();
            const auto next = std::ranges::find(set_.policies, pattern.text(), &Policy::name);
            if (!pattern.is_literal() || next == set_.policies.end()) return;
            if (&*next == &start) {
                add(Severity::error, required(start.match).front()->at, 6,
                    "'parent' runs in a ring: " + in_quotes(start.name) +
                        " can only match below a process that it matched before",
                    "give one of the policies in the ring another condition");
                return;
            }
            at = &*next;
        }
    }

    void shadowed(const Policy& policy, const Policy& by) {
        add(Severity::warning, policy.at, 1,
            "this policy is never reached: " + in_quotes(by.name) + " takes all of its processes first",
            "give it a higher priority, or a narrower match to the other");
    }

    /// The same text for selectors that hold for the same processes because they say the same.
    static std::string canonical(const Selector& selector) {
        if (selector.op == Selector::Op::test) return canonical(selector.condition);
        std::vector<std::string> parts;
        for (const auto& child : selector.children)
            parts.push_back(canonical(child));
        std::ranges::sort(parts);
        if (parts.size() == 1 && selector.op != Selector::Op::none) return parts.front();
        std::string text = std::to_string(static_cast<int>(selector.op)) + "(";
        for (const auto& part : parts)
            text += part + ";";
        return text + ")";
    }

    static std::string canonical(const Condition& condition) {
        std::vector<std::string> parts;
        for (const auto& pattern : condition.patterns)
            parts.push_back(std::to_string(pattern.text().size()) + ":" + pattern.text());
        for (const auto& [first, last] : condition.ports)
            parts.push_back(std::to_string(first) + "-" + std::to_string(last));
        std::ranges::sort(parts);
        std::string text = std::to_string(static_cast<int>(condition.field)) +
                           (condition.flag || condition.user_units ? "+" : "=");
        for (const auto& part : parts)
            text += part + ",";
        return text;
    }

    const PolicySet& set_;
    std::vector<Diagnostic>& out_;
    std::vector<std::string_view> names_;
    std::unordered_map<std::string, std::optional<std::string>> parents_; ///< patterns that were looked at
    std::size_t guesses_ = 0;
};

} // namespace

void check_set(const PolicySet& set, std::vector<Diagnostic>& out) {
    Checker checker(set, out);
    checker.parents();
    checker.reach();
}

} // namespace affinityd::policy
