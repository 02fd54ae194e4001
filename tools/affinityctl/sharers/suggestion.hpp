// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/sharers/graph.hpp"
#include "affinityctl/sharers/watch.hpp"
#include "topology/topology.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace affinityctl {

/// The conditions of a thread rule, affinityd.policy(5).
struct ThreadChoice {
    std::vector<std::string> names; ///< patterns, in printable ASCII; empty: any name
    std::optional<std::pair<unsigned, unsigned>> index;
};

/// The conditions of one rule that means these threads and no other that the process had; no value: nothing
/// can, as other threads have their names, and their places are not in a row. Names come first: places change
/// when threads end.
[[nodiscard]] std::optional<ThreadChoice> choose_threads(const std::map<Wakes::Thread, WokenThread>& threads,
                                                         const std::vector<Wakes::Thread>& members);

/// A pattern for a name, in printable ASCII that needs no escape in YAML's double quotes but " and \. Bytes
/// that are not are ?, so it may mean other names, too. "" for "": there is no such pattern.
[[nodiscard]] std::string name_pattern(std::string_view name);

/// A policy's rule for one group of the graph.
struct GroupRule {
    std::string level;                  ///< "llc", "node" or "socket": where it has a CPU for each thread
    std::optional<ThreadChoice> choice; ///< no value: no rule can mean these threads alone
};

/// The policy that follows from a graph.
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
