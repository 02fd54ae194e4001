// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/document.hpp"
#include "affinityctl/sharers/watch.hpp"
#include "topology/topology.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace affinityctl {

/// Two threads that woke each other.
struct SharerEdge {
    Wakes::Thread one, other;    ///< one < other
    std::uint64_t one_wakes = 0; ///< times that `one` woke `other`
    std::uint64_t other_wakes = 0;
    double rate = 0;  ///< both, per second
    double share = 0; ///< their part of all wake-ups of one of the two, of the one with the greater part
    bool is_sharer = false;
    unsigned group = 0; ///< that both are in, counted from 1; 0: none
    [[nodiscard]] std::uint64_t wakes() const { return one_wakes + other_wakes; }
};

/// Pairs of threads that share, strongest first; threads that belong together.
struct SharerGraph {
    std::vector<SharerEdge> edges; ///< all pairs, also those that are no sharers
    /// Each of two threads at least, ascending; in the order of their strongest pairs.
    std::vector<std::vector<Wakes::Thread>> groups;
    std::uint64_t wakes = 0;    ///< of all pairs
    std::size_t weak_pairs = 0; ///< pairs that are no sharers
    std::uint64_t weak_wakes = 0;
};

/// Two sharers are in one group if their pair has a good part of the wake-ups of the strongest pair of each
/// of them, and so are all that hang together by such pairs: a thread that hands work to all now and then
/// does not make one group of all.
[[nodiscard]] SharerGraph graph_of(const Wakes& wakes);

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

extern const Fields sharers_answer;

/// The pairs, the groups, remarks, and the policy that follows; in the picture a map of which thread wakes
/// which, groups side by side. `has_ended`: the process, meanwhile.
[[nodiscard]] Document sharers_document(const WatchedProcess& process, const Wakes& wakes, bool has_ended,
                                        const affinityd::topology::Topology& topology);

} // namespace affinityctl
