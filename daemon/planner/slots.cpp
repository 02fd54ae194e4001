// SPDX-License-Identifier: Apache-2.0
#include "planner/slots.hpp"

#include "base/glob.hpp"

#include <algorithm>
#include <limits>
#include <optional>
#include <ranges>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityd::planner {

namespace {

using policy::Bind;
using policy::CpuExpr;
using policy::CpuExprError;
using policy::Spread;
using topology::Topology;
using Evaluated = std::expected<CpuSet, CpuExprError>;
using Nics = std::map<std::string, CpuSet, std::less<>>;
using Op = CpuExpr::Op;

/// The level of a spread; `set` divides nothing, and is coarser than all others.
constexpr Bind level_of(Spread spread) {
    switch (spread) {
    case Spread::cpu:
        return Bind::cpu;
    case Spread::core:
        return Bind::core;
    case Spread::llc:
        return Bind::llc;
    case Spread::node:
        return Bind::node;
    default:
        return Bind::set;
    }
}

std::vector<CpuSet> spread_groups(const Topology& topology, Spread spread, const CpuSet& allowed) {
    if (spread == Spread::socket) return cut_groups(topology.packages, allowed);
    return groups_of(topology, level_of(spread), allowed);
}

/// Takes a place of each group, then the next of each: a0 b0 a1 b1 ...
std::vector<CpuSet> take_in_turn(const std::vector<CpuSet>& groups, const std::vector<CpuSet>& places) {
    std::vector<std::vector<CpuSet>> rows(groups.size());
    for (const auto& place : places)
        for (std::size_t i = 0; i < groups.size(); ++i)
            if (groups[i].contains(place.first())) {
                rows[i].push_back(place);
                break;
            }
    std::vector<CpuSet> order;
    for (std::size_t turn = 0; order.size() < places.size(); ++turn)
        for (const auto& row : rows)
            if (turn < row.size()) order.push_back(row[turn]);
    return order;
}

/// The distance of its nearest CPU.
unsigned distance(const std::vector<unsigned>& distances, const CpuSet& place) {
    unsigned least = std::numeric_limits<unsigned>::max();
    for (const unsigned cpu : place)
        least = std::min(least, cpu < distances.size() ? distances[cpu] : least);
    return least;
}

CpuSet widen(const Topology& topology, Bind bind, const CpuSet& cpus, const CpuSet& allowed) {
    switch (bind) {
    case Bind::cpu:
        return {cpus.first()};
    case Bind::core:
        return topology.core_of(cpus.first()) & allowed;
    case Bind::llc:
        return topology.llc_of(cpus.first()) & allowed;
    case Bind::node:
        return topology.node_cpus_of(cpus.first()) & allowed;
    case Bind::set:
        return allowed;
    }
    return allowed;
}

/// Isolated CPUs are places of their own: the first part of each place, then the second of each, ...
std::vector<CpuSet> part_isolated(const std::vector<CpuSet>& places, const CpuSet& isolated) {
    std::vector<CpuSet> parts;
    for (const auto& place : places) {
        if (CpuSet rest = place - isolated; !rest.empty()) parts.push_back(std::move(rest));
        for (const unsigned cpu : place& isolated)
            parts.push_back({cpu});
    }
    return parts.size() == places.size() ? parts : take_in_turn(places, parts);
}

/// Two CPUs of a core each; the last of an odd number is alone.
std::vector<CpuSet> pairs_of(const Topology& topology, const CpuSet& allowed) {
    std::vector<CpuSet> pairs;
    for (const auto& core : groups_of(topology, Bind::core, allowed))
        for (CpuSet rest = core; !rest.empty(); rest -= pairs.back()) {
            auto& pair = pairs.emplace_back(CpuSet{rest.first()});
            if (const CpuSet more = rest - pair; !more.empty()) pair.insert(more.first());
        }
    return pairs;
}

/// The CPUs that share a core with an earlier one of the set.
CpuSet second_threads(const Topology& topology, const CpuSet& set) {
    CpuSet result;
    for (const auto& core : topology.cores) {
        const CpuSet here = core & set;
        if (here.count() > 1) result |= here - CpuSet{here.first()};
    }
    return result;
}

/// The CPUs of a part without children, and what of it the machine lacks.
struct Atom {
    CpuSet cpus;
    std::optional<CpuExprError> lack{};
};

Atom lacking(const CpuExpr& expr, CpuSet cpus, std::string message, std::string hint) {
    return {std::move(cpus), CpuExprError{expr.offset, expr.length, std::move(message), std::move(hint)}};
}

/// Groups by the numbers that people call them by.
using Numbered = std::map<unsigned, CpuSet>;

/// By their place in the order of their first CPUs.
Numbered counted(const std::vector<CpuSet>& groups) {
    Numbered numbered;
    for (const auto& group : groups)
        numbered.emplace(static_cast<unsigned>(numbered.size()), group);
    return numbered;
}

Numbered nodes(const Topology& topology) {
    Numbered nodes;
    for (const auto& node : topology.nodes)
        nodes.emplace(node.id, node.cpus);
    return nodes;
}

/// By the numbers that the kernel gives packages; where it gives none, by their order.
Numbered sockets(const Topology& topology) {
    Numbered sockets;
    for (const auto& cpu : topology.cpus)
        if (cpu.package) sockets[static_cast<unsigned>(*cpu.package)].insert(cpu.id);
    return sockets.empty() ? counted(topology.packages) : sockets;
}

Atom chosen(const CpuExpr& expr, const Numbered& groups, const char* what) {
    CpuSet cpus, known;
    for (const auto& [id, group] : groups) {
        known.insert(id);
        if (expr.ids.contains(id)) cpus |= group;
    }
    if (const CpuSet missing = expr.ids - known; !missing.empty())
        return lacking(expr, cpus, fmt::format("there is no {} {} on this machine", what, missing.first()),
                       known.empty() ? "it has none" : "it has " + known.to_list());
    return {cpus};
}

Atom numbers(const CpuExpr& expr, const Topology& topology) {
    const CpuSet missing = expr.ids - topology.possible;
    if (missing.empty()) return {expr.ids};
    return lacking(expr, expr.ids - missing,
                   fmt::format("CPU {} does not exist on this machine", missing.to_list()),
                   "it has CPUs " + topology.possible.to_list());
}

Atom kinds(const CpuExpr& expr, const Topology& topology) {
    std::string known;
    for (const auto& kind : topology.kinds) {
        if (kind.name == expr.name) return {kind.cpus};
        known += (known.empty() ? "" : ", ") + kind.name;
    }
    if (topology.kinds.empty() && expr.name == "performance")
        return {topology.online}; // all cores are alike, so each is of the best kind
    return lacking(expr, {}, fmt::format("there is no kind of core called '{}' on this machine", expr.name),
                   known.empty() ? "all its cores are alike" : "it has " + known);
}

Atom interfaces(const CpuExpr& expr, const Nics& nics, const CpuSet& own) {
    if (expr.name.empty()) return {own};
    CpuSet cpus;
    for (const auto& [name, near] : nics)
        if (glob_match(expr.name, name)) cpus |= near;
    if (!cpus.empty()) return {cpus};
    return lacking(expr, {}, fmt::format("there is no interface '{}' here", expr.name),
                   nics.empty() ? "" : fmt::format("there are {}", fmt::join(nics | std::views::keys, ", ")));
}

Atom atom(const CpuExpr& expr, const Topology& topology, const Nics& nics, const CpuSet& own) {
    switch (expr.op) {
    case Op::list:
        return numbers(expr, topology);
    case Op::isolated:
        return {topology.isolated};
    case Op::nohz_full:
        return {topology.nohz_full};
    case Op::pods:
        return {topology.pods & topology.online};
    case Op::housekeeping:
        return {topology.housekeeping};
    case Op::smt:
        return {topology.smt_secondary()};
    case Op::node:
        if (topology.nodes.empty() && expr.ids == CpuSet{0})
            return {topology.online}; // a machine without NUMA is node 0
        return chosen(expr, nodes(topology), "NUMA node");
    case Op::socket:
        return chosen(expr, sockets(topology), "socket");
    case Op::die:
        return chosen(expr, counted(topology.dies), "die");
    case Op::cluster:
        return chosen(expr, counted(topology.clusters), "cluster");
    case Op::llc:
        return chosen(expr, counted(topology.llc_groups()), "last-level-cache group");
    case Op::core:
        return chosen(expr, counted(topology.cores), "core");
    case Op::kind:
        return kinds(expr, topology);
    case Op::nic:
        return interfaces(expr, nics, own);
    default:
        return {topology.online};
    }
}

/// `is_needed`: an error if the machine lacks a part.
Evaluated value_of(const CpuExpr& expr, const Topology& topology, const Nics& nics, const CpuSet& own,
                   bool is_needed) {
    if (expr.children.empty()) {
        auto found = atom(expr, topology, nics, own);
        if (is_needed && found.lack) return std::unexpected(std::move(*found.lack));
        return std::move(found.cpus);
    }
    is_needed = is_needed && expr.op != Op::complement;
    auto left = value_of(expr.children.front(), topology, nics, own, is_needed);
    if (!left) return left;
    if (expr.op == Op::complement) return topology.online - *left;
    is_needed = is_needed && expr.op != Op::subtract;
    const auto right = value_of(expr.children.back(), topology, nics, own, is_needed);
    if (!right) return right;
    if (expr.op == Op::unite) return *left | *right;
    if (expr.op == Op::intersect) return *left & *right;
    return *left - *right;
}

} // namespace

std::vector<unsigned> distances_to(const Topology& topology, const CpuSet& near) {
    constexpr unsigned local = 10, remote = 20; // where no distances are recorded: the usual ones
    std::vector<unsigned> distances(topology.online.empty() ? 0 : topology.online.last() + 1U,
                                    topology.nodes.empty() ? local : remote);
    const auto set = [&](const CpuSet& cpus, unsigned distance) {
        for (const unsigned cpu : cpus& topology.online)
            distances[cpu] = distance;
    };
    for (const auto& from : topology.nodes) {
        unsigned least = std::numeric_limits<unsigned>::max();
        for (std::size_t i = 0; i < topology.nodes.size(); ++i)
            if (topology.nodes[i].cpus.intersects(near)) {
                const unsigned usual = &topology.nodes[i] == &from ? local : remote;
                least = std::min(least, i < from.distance.size() ? from.distance[i] : usual);
            }
        if (least != std::numeric_limits<unsigned>::max()) set(from.cpus, least);
    }
    for (const auto& group : topology.llc_groups())
        if (group.intersects(near)) set(group, 1);
    set(near, 0);
    return distances;
}

std::vector<CpuSet> cut_groups(std::vector<CpuSet> groups, const CpuSet& allowed) {
    CpuSet rest = allowed;
    std::vector<CpuSet> result;
    for (auto& group : groups) {
        group &= rest; // recorded groups may overlap: no CPU is in two
        if (group.empty()) continue;
        rest -= group;
        result.push_back(std::move(group));
    }
    if (!rest.empty()) result.push_back(std::move(rest));
    std::ranges::sort(result, {}, &CpuSet::first);
    return result;
}

std::vector<CpuSet> groups_of(const Topology& topology, Bind level, const CpuSet& allowed) {
    std::vector<CpuSet> groups;
    if (level == Bind::core) groups = topology.cores;
    if (level == Bind::llc) groups = topology.llc_groups();
    if (level == Bind::set) groups = {allowed};
    if (level == Bind::node)
        for (const auto& node : topology.nodes)
            groups.push_back(node.cpus);
    // A CPU that is in no recorded core is a core of its own.
    if (level == Bind::cpu || level == Bind::core)
        for (const unsigned cpu : allowed)
            groups.push_back({cpu});
    return cut_groups(std::move(groups), allowed);
}

std::vector<Slot> make_slots(const Topology& topology, const policy::Placement& placement,
                             const CpuSet& allowed, const CpuSet& near) {
    const CpuSet secondary = second_threads(topology, allowed);
    CpuSet usable = allowed;
    if (placement.smt == policy::Smt::avoid) usable -= secondary;

    const bool spread_is_coarser = level_of(placement.spread) > placement.bind;
    const bool is_paired = placement.smt == policy::Smt::pair;
    std::vector<CpuSet> places;
    if (is_paired)
        places = pairs_of(topology, usable);
    else if (placement.spread == Spread::any)
        places = groups_of(topology, placement.bind, usable);
    else if (spread_is_coarser)
        places = take_in_turn(spread_groups(topology, placement.spread, usable),
                              groups_of(topology, placement.bind, usable));
    else
        places = spread_groups(topology, placement.spread, usable);

    if (allowed.intersects(topology.isolated) && !is_paired)
        places = part_isolated(places, topology.isolated);

    std::ranges::stable_partition(places, [&](const CpuSet& place) { return !secondary.contains(place); });
    std::vector<unsigned> distances;
    if (!near.empty()) {
        distances = distances_to(topology, near);
        std::ranges::stable_sort(places, {}, [&](const CpuSet& place) { return distance(distances, place); });
    }

    std::vector<Slot> slots;
    for (auto& place : places) {
        CpuSet mask = is_paired ? place : widen(topology, placement.bind, place, usable);
        if (mask.empty()) mask = place; // the machine records no such level for this CPU
        if (place.intersects(topology.isolated))
            mask = place;
        else
            mask -= topology.isolated;
        const unsigned away = near.empty() ? 0 : distance(distances, place);
        slots.push_back({std::move(place), std::move(mask), away});
    }
    return slots;
}

bool parts_isolated(const Topology& topology, Bind bind, const CpuSet& allowed) {
    return std::ranges::any_of(allowed & topology.isolated, [&](unsigned cpu) {
        return widen(topology, bind, {cpu}, allowed).count() > 1;
    });
}

std::vector<Slot> halves(const std::vector<Slot>& pairs, unsigned number) {
    std::vector<Slot> found;
    for (const auto& [cpus, mask, away] : pairs)
        if (cpus.count() > 1)
            found.push_back({cpus, CpuSet{number % 2 == 0 ? cpus.first() : cpus.last()}, away});
    return found;
}

std::vector<Slot> cut_slots(const std::vector<Slot>& slots, const CpuSet& cpuset) {
    std::vector<Slot> rest;
    for (const auto& slot : slots)
        if (slot.cpus.intersects(cpuset))
            rest.push_back({slot.cpus & cpuset, slot.mask & cpuset, slot.distance});
    return rest;
}

Evaluated evaluate(const CpuExpr& expr, const Topology& topology, const Nics& nics, const CpuSet& own) {
    return value_of(expr, topology, nics, own, true);
}

} // namespace affinityd::planner
