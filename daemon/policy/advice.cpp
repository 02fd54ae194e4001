// SPDX-License-Identifier: Apache-2.0
#include "policy/advice.hpp"

#include "policy/breadth.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace affinityd::policy {

namespace {

using Field = Condition::Field;

/// What every text has that the pattern matches; "" for a regular expression.
std::string_view fixed_beginning(const Pattern& pattern) {
    const std::string_view text = pattern.text();
    if (pattern.is_literal()) return text;
    const bool is_regex = text.size() > 1 && text.starts_with('/') && text.ends_with('/');
    return is_regex ? std::string_view{} : text.substr(0, text.find_first_of("*?[\\"));
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

/// What any user who logs in has.
bool is_users_unit(const Pattern& unit) {
    if (unit.text() == "user.slice") return true;
    if (unit.is_literal()) return false; // at most one user's
    constexpr std::array<std::string_view, 3> samples{"user-4711.slice", "session-4711.scope",
                                                      "user@4711.service"};
    return std::ranges::any_of(samples, [&](auto name) { return unit.matches(name); });
}

class Forger {
  public:
    explicit Forger(const PolicySet& set) : set_(set) {}

    /// `depth`: how many policies were asked for by `parent`; rings are reported elsewhere.
    [[nodiscard]] bool can_meet(const Selector& selector, std::size_t depth = 0) const {
        const auto can = [&](const Selector& child) { return can_meet(child, depth); };
        switch (selector.op) {
        case Selector::Op::test:
            return can_meet(selector.condition, depth);
        case Selector::Op::any:
            return std::ranges::any_of(selector.children, can);
        case Selector::Op::all:
            return std::ranges::all_of(selector.children, can);
        case Selector::Op::none:
            break;
        }
        return true; // whoever wants to be nobody in particular can
    }

  private:
    [[nodiscard]] bool can_meet(const Condition& condition, std::size_t depth) const {
        constexpr std::uint16_t first_free = 1024; // ports from here on are anybody's; ip(7)
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
        case Field::user:
        case Field::group:
            return any(matches_any_text);
        case Field::parent:
            return any([&](const Pattern& name) { return can_be_under(name, depth); });
        case Field::listen:
            return std::ranges::any_of(condition.ports,
                                       [](const auto& range) { return range.second >= first_free; });
        case Field::kthread:
            break;
        }
        return !condition.flag;
    }
    [[nodiscard]] bool can_be_under(const Pattern& name, std::size_t depth) const {
        if (depth > set_.policies.size()) return false;
        return std::ranges::any_of(set_.policies, [&](const Policy& policy) {
            return name.matches(policy.name) && can_meet(policy.match, depth + 1);
        });
    }

    const PolicySet& set_;
};

Diagnostic finding(Severity severity, const Position& at, unsigned length, std::string message,
                   std::string hint) {
    return {.severity = severity,
            .at = at,
            .length = length,
            .message = std::move(message),
            .hint = std::move(hint),
            .source_line = {}};
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

bool is_forgeable(const Policy& policy, const PolicySet& set) {
    return !policy.match.children.empty() && Forger(set).can_meet(policy.match);
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

} // namespace affinityd::policy
