// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/sharers/graph.hpp"
#include "affinityctl/sharers/numa_groups.hpp"
#include "affinityctl/sharers/suggestion.hpp"
#include "affinityctl/sharers/wakes.hpp"
#include "affinityctl/sharers/watched_process.hpp"

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

} // namespace affinityctl
