// SPDX-License-Identifier: Apache-2.0
#include "policy/set_check.hpp"

#include "policy/diagnostic.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace affinityd::policy {

namespace {

using Field = Condition::Field;
using Findings = std::vector<Diagnostic>;

constexpr unsigned exact = 4; // one name, one port
constexpr unsigned loose = 2; // a pattern with wildcards, a range
constexpr unsigned weak = 1;  // kthread, not

unsigned weight(const Condition& condition) {
    if (condition.field == Field::kthread) return weak;
    if (std::ranges::any_of(condition.patterns, matches_everything)) return 0;
    const bool is_exact =
        std::ranges::all_of(condition.ports, [](const auto& range) { return range.first == range.second; }) &&
        std::ranges::all_of(condition.patterns, &Pattern::is_literal);
    return is_exact ? exact : loose;
}

/// True if the pattern matches any text that is not empty, as far as samples show.
bool matches_any_text(const Pattern& pattern) {
    constexpr std::array<std::string_view, 3> samples{"a", "0", "/~ \x7f%"};
    return std::ranges::all_of(samples, [&](auto text) { return pattern.matches(text); });
}

bool is_any(const Condition& condition) {
    switch (condition.field) {
    case Field::container: // not every process is in one,
    case Field::pod:
    case Field::pod_namespace:
    case Field::parent: // or has one under a policy
    case Field::listen:
        return false;
    case Field::kthread:
        return !condition.flag;
    default:
        return std::ranges::any_of(condition.patterns, matches_any_text);
    }
}

/// Reports names in `parent` that no policy has.
void check_parents(const Selector& selector, std::span<const std::string_view> names, Findings& out) {
    for (const auto& child : selector.children)
        check_parents(child, names, out);
    if (selector.op != Selector::Op::test || selector.condition.field != Field::parent) return;
    for (const auto& pattern : selector.condition.patterns)
        if (std::ranges::none_of(names, [&](std::string_view name) { return pattern.matches(name); }))
            out.push_back(finding(Severity::warning, selector.condition.at, 6,
                                  "'parent': no policy is named " + in_quotes(pattern.text()),
                                  did_you_mean(pattern.text(), names)));
}

/// A `parent` that must hold, whatever else does; null: there is none.
const Condition* required_parent(const Selector& selector) {
    if (selector.op == Selector::Op::test)
        return selector.condition.field == Field::parent ? &selector.condition : nullptr;
    const bool every = selector.op == Selector::Op::all ||
                       (selector.op == Selector::Op::any && selector.children.size() == 1);
    for (std::size_t at = 0; every && at < selector.children.size(); ++at)
        if (const auto* found = required_parent(selector.children[at])) return found;
    return nullptr;
}

/// Follows `parent` while it names exactly one policy; back at the start, no process can ever be the first.
void check_ring(const PolicySet& set, const Policy& start, Findings& out) {
    const Policy* at = &start;
    for (std::size_t steps = 0; steps <= set.policies.size(); ++steps) {
        const auto* parent = required_parent(at->match);
        if (parent == nullptr || parent->patterns.size() != 1) return;
        const auto& pattern = parent->patterns.front();
        const auto next = std::ranges::find(set.policies, pattern.text(), &Policy::name);
        if (!pattern.is_literal() || next == set.policies.end()) return;
        at = &*next;
        if (at != &start) continue;
        out.push_back(finding(Severity::error, required_parent(start.match)->at, 6,
                              "'parent' runs in a ring: " + in_quotes(start.name) +
                                  " can only match below a process that it matched before",
                              "give one of the policies in the ring another condition"));
        return;
    }
}

/// With its parts in one order, so that equal conditions have equal texts.
Selector in_order(Selector selector) {
    for (auto& child : selector.children)
        child = in_order(std::move(child));
    if (selector.children.size() == 1 && selector.op != Selector::Op::none)
        return std::move(selector.children.front());
    std::ranges::sort(selector.children, {}, [](const Selector& child) { return to_yaml(child); });
    std::ranges::sort(selector.condition.patterns, {}, &Pattern::text);
    std::ranges::sort(selector.condition.ports);
    return selector;
}

/// Reports policies that an earlier one of the same conditions, or of none, leaves nothing to.
void check_reach(const PolicySet& set, Findings& out) {
    std::unordered_map<std::string, const Policy*> taken; // by conditions
    const Policy* everything = nullptr;
    for (const auto& policy : set.policies) {
        if (policy.model == Model::irq && policy.names_interrupts()) continue; // they are what it is for
        const Policy* by = everything;
        if (by == nullptr) {
            const auto [at, is_new] = taken.try_emplace(to_yaml(in_order(policy.match)), &policy);
            if (!is_new && !policy.everything_else) by = at->second;
            if (policy.match.op == Selector::Op::all && policy.match.children.empty()) everything = &policy;
        }
        if (by != nullptr)
            out.push_back(finding(Severity::warning, policy.at, 1,
                                  "this policy is never reached: " + in_quotes(by->name) +
                                      " takes all of its processes first",
                                  "give it a higher priority, or a narrower match to the other"));
    }
}

/// The beginning of every text that the pattern matches; "" for a regular expression.
std::string_view fixed_beginning(const Pattern& pattern) {
    const std::string_view text = pattern.text();
    if (pattern.is_literal()) return text;
    return Pattern::is_expression(text) ? std::string_view{} : text.substr(0, text.find_first_of("*?[\\"));
}

/// A user may have a program at a path that the pattern matches.
bool is_in_users_folder(const Pattern& path) {
    constexpr std::array<std::string_view, 7> folders{"/home/",     "/tmp/",   "/var/tmp/", "/dev/shm/",
                                                      "/run/user/", "/media/", "/mnt/"};
    const auto fixed = fixed_beginning(path);
    const auto folder = fixed.substr(0, fixed.rfind('/') + 1);
    return folder.size() < 2 ||
           std::ranges::any_of(folders, [&](auto users) { return folder.starts_with(users); });
}

/// A user may have a control group at a path that the pattern matches.
bool is_in_users_group(const Pattern& path) {
    constexpr std::string_view users = "/user.slice";
    const auto fixed = fixed_beginning(path);
    return fixed.size() < 2 || users.starts_with(fixed) || fixed.starts_with(users);
}

/// A unit that any user who logs in has.
bool is_users_unit(const Pattern& unit) {
    if (unit.text() == "user.slice") return true;
    if (unit.is_literal()) return false; // at most one user's
    constexpr std::array<std::string_view, 3> samples{"user-4711.slice", "session-4711.scope",
                                                      "user@4711.service"};
    return std::ranges::any_of(samples, [&](auto name) { return unit.matches(name); });
}

bool can_forge(const Selector& selector, const PolicySet& set, std::size_t depth);

/// True if any user can make a process for which the condition holds. `depth`: how many policies were asked
/// for by `parent`; rings are reported elsewhere.
bool can_forge(const Condition& condition, const PolicySet& set, std::size_t depth) {
    constexpr std::uint16_t first_free = 1024; // any user may have ports from here on; ip(7)
    const auto any = [&](const auto& is) { return std::ranges::any_of(condition.patterns, is); };
    switch (condition.field) {
    case Field::comm:
    case Field::cmdline:
        return true;
    case Field::exe:
        return any(is_in_users_folder);
    case Field::cgroup:
        return any(is_in_users_group);
    case Field::unit:
        return condition.user_units || any(is_users_unit);
    case Field::container:
        return condition.user_units;
    case Field::pod:
    case Field::pod_namespace:
        return false;
    case Field::user:
    case Field::group:
        return any(matches_any_text);
    case Field::parent:
        return depth <= set.policies.size() && any([&](const Pattern& name) {
                   return std::ranges::any_of(set.policies, [&](const Policy& policy) {
                       return name.matches(policy.name) && can_forge(policy.match, set, depth + 1);
                   });
               });
    case Field::listen:
        return std::ranges::any_of(condition.ports,
                                   [](const auto& range) { return range.second >= first_free; });
    case Field::kthread:
        break;
    }
    return !condition.flag;
}

bool can_forge(const Selector& selector, const PolicySet& set, std::size_t depth) {
    const auto can = [&](const Selector& child) { return can_forge(child, set, depth); };
    if (selector.op == Selector::Op::test) return can_forge(selector.condition, set, depth);
    if (selector.op == Selector::Op::none) return true; // any process can avoid being matched
    return selector.op == Selector::Op::any ? std::ranges::any_of(selector.children, can)
                                            : std::ranges::all_of(selector.children, can);
}

Diagnostic about_forgery(const Policy& policy) {
    const bool moves_interrupts =
        policy.model == Model::full || (policy.model == Model::irq && policy.nics_auto);
    std::string message = "any user can start a process that meets these conditions";
    const bool claims = policy.exclusive != Exclusive::no;
    if (claims)
        message += ", and so keep others' tasks off the CPUs of 'exclusive'";
    else if (moves_interrupts)
        message += ", and so move interrupts that serve others, too";
    return finding(claims || moves_interrupts ? Severity::warning : Severity::note, policy.match_at, 5,
                   std::move(message), "add 'user', or a 'unit' that root starts");
}

/// Whether a program can be steered under `auto`, only its listeners say.
bool is_pinned_unsteered(const Policy& policy) {
    return policy.model == Model::full && policy.steer == Steer::none &&
           (policy.placement.bind == Bind::cpu || policy.placement.bind == Bind::core);
}

} // namespace

bool matches_everything(const Pattern& pattern) {
    return !pattern.text().empty() && pattern.text().find_first_not_of('*') == std::string::npos;
}

unsigned specificity(const Selector& selector) {
    if (selector.op == Selector::Op::test) return weight(selector.condition);
    if (selector.children.empty()) return 0;
    if (selector.op == Selector::Op::none) return weak;
    unsigned sum = 0, least = ~0U;
    for (const auto& child : selector.children) {
        sum += specificity(child);
        least = std::min(least, specificity(child));
    }
    return selector.op == Selector::Op::all ? sum : least;
}

bool comes_before(const Policy& a, const Policy& b) {
    // Swapped sides where the greater value comes first.
    const auto key = [](const Policy& first, const Policy& second) {
        return std::tuple(first.everything_else, second.priority, specificity(second.match),
                          std::string_view(first.name));
    };
    return key(a, b) < key(b, a);
}

bool is_for_all(const Selector& selector) {
    switch (selector.op) {
    case Selector::Op::test:
        return is_any(selector.condition);
    case Selector::Op::all:
        return std::ranges::all_of(selector.children, is_for_all);
    case Selector::Op::any:
        return std::ranges::any_of(selector.children, is_for_all);
    case Selector::Op::none:
        break;
    }
    // `not` in `not` is a condition again.
    return std::ranges::all_of(selector.children, [](const Selector& child) {
        const auto* inner = &child;
        while (inner->op == Selector::Op::all && inner->children.size() == 1)
            inner = &inner->children.front();
        return inner->op != Selector::Op::none || std::ranges::any_of(inner->children, is_for_all);
    });
}

void check_set(const PolicySet& set, std::vector<Diagnostic>& out) {
    std::vector<std::string_view> names;
    for (const auto& policy : set.policies)
        names.push_back(policy.name);
    for (const auto& policy : set.policies)
        check_parents(policy.match, names, out);
    for (const auto& policy : set.policies)
        check_ring(set, policy, out);
    check_reach(set, out);
}

bool is_forgeable(const Policy& policy, const PolicySet& set) {
    return !policy.match.children.empty() && can_forge(policy.match, set, 0);
}

std::vector<Diagnostic> advice(const PolicySet& set) {
    std::vector<Diagnostic> found;
    for (const auto& policy : set.policies) {
        if (policy.model == Model::none) continue;
        if (is_forgeable(policy, set)) found.push_back(about_forgery(policy));
        if (is_pinned_unsteered(policy))
            found.push_back(
                finding(Severity::note, policy.at, 1,
                        "'steer: none' with tasks bound to single CPUs or cores: about one packet in "
                        "N is read where it arrives, with N lanes",
                        "leave 'bind' out: the scheduler may follow packets inside the cache group "
                        "then; or leave 'steer' out"));
        if (policy.exclusive != Exclusive::no)
            found.push_back(finding(Severity::note, policy.at, 1,
                                    "'exclusive' is no fence: programs that set masks of their own still get "
                                    "at these CPUs",
                                    "fences are 'means: cpuset' for those programs, cpuset partitions, and "
                                    "isolcpus= on the kernel's command line"));
    }
    return found;
}

bool has_word(const PolicySet& policies, CpuExpr::Op word) {
    const auto has = [word](const std::optional<CpuExpr>& expr) { return expr && has_word(*expr, word); };
    const auto is_in = [&](const Placement& placement) { return has(placement.cpus) || has(placement.near); };
    return std::ranges::any_of(policies.policies, [&](const Policy& policy) {
        return is_in(policy.placement) || has(policy.rps) ||
               std::ranges::any_of(policy.threads, is_in, &ThreadRule::placement);
    });
}

} // namespace affinityd::policy
