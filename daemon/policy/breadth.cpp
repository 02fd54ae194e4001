// SPDX-License-Identifier: Apache-2.0
#include "policy/breadth.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace affinityd::policy {

namespace {

using Field = Condition::Field;

bool is_any(const Condition& condition) {
    switch (condition.field) {
    case Field::container: // not everybody is in one,
    case Field::parent:    // or has one under a policy
        return false;
    case Field::listen:
        return false;
    case Field::kthread:
        return !condition.flag;
    default:
        return std::ranges::any_of(condition.patterns, matches_any_text);
    }
}

} // namespace

bool matches_any_text(const Pattern& pattern) {
    constexpr std::array<std::string_view, 3> samples{"a", "0", "/~ \x7f%"};
    return std::ranges::all_of(samples, [&](auto text) { return pattern.matches(text); });
}

bool is_for_everybody(const Selector& selector) {
    switch (selector.op) {
    case Selector::Op::test:
        return is_any(selector.condition);
    case Selector::Op::all:
        return std::ranges::all_of(selector.children, is_for_everybody);
    case Selector::Op::any:
        return std::ranges::any_of(selector.children, is_for_everybody);
    case Selector::Op::none:
        break;
    }
    // `not` in `not` is a condition again.
    return std::ranges::all_of(selector.children, [](const Selector& child) {
        const auto* inner = &child;
        while (inner->op == Selector::Op::all && inner->children.size() == 1)
            inner = &inner->children.front();
        return inner->op != Selector::Op::none || std::ranges::any_of(inner->children, is_for_everybody);
    });
}

} // namespace affinityd::policy
