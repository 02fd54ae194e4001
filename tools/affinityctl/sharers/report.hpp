// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/document.hpp"
#include "affinityctl/sharers/graph.hpp"
#include "affinityctl/sharers/suggestion.hpp"
#include "affinityctl/sharers/watch.hpp"

namespace affinityctl {

/// All that `sharers` shows.
struct SharersReport {
    WatchedProcess process;
    Wakes wakes;
    SharerGraph graph;
    Suggestion suggestion;
    NumaHinting hinting = NumaHinting::off;
    bool has_ended = false; ///< the process, meanwhile
};

extern const Fields sharers_answer;

/// The pairs, the groups, remarks, and the policy that follows; in the picture a map of which thread wakes
/// which, groups side by side.
[[nodiscard]] Document sharers_document(const SharersReport& report);

} // namespace affinityctl
