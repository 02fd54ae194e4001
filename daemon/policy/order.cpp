// SPDX-License-Identifier: Apache-2.0
#include "policy/order.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace affinityd::policy {

namespace {

constexpr unsigned exact = 4; // one name, one port
constexpr unsigned loose = 2; // a pattern with wildcards, a range
constexpr unsigned weak = 1;  // kthread, not

unsigned weight(const Condition& condition) {
    if (condition.field == Condition::Field::kthread) return weak;
    if (condition.field == Condition::Field::listen) {
        const bool single = std::ranges::all_of(
            condition.ports, [](const auto& range) { return range.first == range.second; });
        return single ? exact : loose;
    }
    if (std::ranges::any_of(condition.patterns, matches_everything)) return 0;
    return std::ranges::all_of(condition.patterns, &Pattern::is_literal) ? exact : loose;
}

} // namespace

bool matches_everything(const Pattern& pattern) {
    return !pattern.text().empty() && pattern.text().find_first_not_of('*') == std::string::npos;
}

unsigned specificity(const Selector& selector) {
    switch (selector.op) {
    case Selector::Op::test:
        return weight(selector.condition);
    case Selector::Op::none:
        return selector.children.empty() ? 0 : weak;
    case Selector::Op::any: {
        unsigned least = selector.children.empty() ? 0 : std::numeric_limits<unsigned>::max();
        for (const auto& child : selector.children)
            least = std::min(least, specificity(child));
        return least;
    }
    case Selector::Op::all:
        break;
    }
    unsigned sum = 0;
    for (const auto& child : selector.children)
        sum += specificity(child);
    return sum;
}

bool comes_before(const Policy& a, const Policy& b) {
    // Swapped sides where the greater value comes first.
    const auto key = [](const Policy& first, const Policy& second) {
        return std::tuple(first.everything_else, second.priority, specificity(second.match),
                          std::string_view(first.name));
    };
    return key(a, b) < key(b, a);
}

} // namespace affinityd::policy
