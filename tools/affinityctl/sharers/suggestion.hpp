// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/sharers/graph.hpp"
#include "affinityctl/sharers/thread_choice.hpp"
#include "affinityctl/sharers/watched_process.hpp"
#include "topology/topology.hpp"

#include <optional>
#include <string>
#include <vector>

namespace affinityctl {

/// What a policy would say of one group of the graph.
struct GroupRule {
    std::string level;                  ///< "llc", "node" or "socket": where it has a CPU for each thread
    std::optional<ThreadChoice> choice; ///< no value: no rule can mean these threads alone
};

/// What follows from a graph.
struct Suggestion {
    std::vector<GroupRule> rules; ///< in the order of the groups
    /// A policy that keeps each group inside a cache group or the like, affinityd.policy(5): the text of a
    /// file in printable ASCII. "": none follows.
    std::string policy;
    bool is_together = false; ///< it has no thread rules: one group has all threads
    std::string void_level{}; ///< the narrowest level of its rules, if the machine has one group of each of
                              ///< them, so that nothing would change; "": it would
};

[[nodiscard]] Suggestion suggestion_for(const WatchedProcess& process, const Wakes& wakes,
                                        const SharerGraph& graph,
                                        const affinityd::topology::Topology& topology);

} // namespace affinityctl
