// SPDX-License-Identifier: Apache-2.0
#include "measure/result.hpp"

#include <algorithm>
#include <array>

namespace affinityd::measure {

namespace {

constexpr std::array<std::string_view, 8> outcomes{"done",      "skipped",   "unreachable", "peer_gone",
                                                   "link_lost", "timed_out", "killed",      "failed"};

} // namespace

std::string_view to_string(Outcome outcome) { return outcomes[static_cast<std::size_t>(outcome)]; }

std::optional<Outcome> parse_outcome(std::string_view text) {
    const auto at = std::ranges::find(outcomes, text);
    if (at == outcomes.end()) return std::nullopt;
    return static_cast<Outcome>(at - outcomes.begin());
}

} // namespace affinityd::measure
