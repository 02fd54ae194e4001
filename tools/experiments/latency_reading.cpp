// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "experiments/latency.hpp"
#include "topology/parts.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace affinityd::experiments {

namespace {

using topology::Latencies;
using topology::LatencyLevel;

using topology::Latencies;
using topology::LatencyLevel;

/// Which distance each pair has: by the topology where it is known, else by the levels that were found.
class Distances {
  public:
    /// `topology` may be null: a foreign table.
    Distances(const Latencies& latencies, const std::vector<LatencyLevel>& levels,
              const topology::Topology* topology)
        : cpus_(latencies.cpus()), levels_(levels) {
        if (topology != nullptr) near_.emplace(*topology);
        for (const auto near : near_ones)
            if (topology != nullptr) all_.push_back({std::string(name_of(near))});
        for (std::size_t level = 0; topology == nullptr && level < levels.size(); ++level)
            all_.push_back({"within groups of level " + std::to_string(level + 1)});
        if (topology == nullptr) all_.push_back({levels.empty() ? "all pairs" : "across groups"});
        std::vector<std::vector<double>> values(all_.size());
        for (std::size_t b = 0; b < cpus_.size(); ++b)
            for (std::size_t a = 0; a < b; ++a)
                if (const auto ns = latencies.at(a, b)) values[of(a, b)].push_back(*ns);
        for (std::size_t i = 0; i < all_.size(); ++i)
            if (!values[i].empty()) fill_in(all_[i], std::move(values[i]));
    }
    /// Near to far; some without a measured pair.
    [[nodiscard]] const std::vector<Distance>& all() const { return all_; }
    /// Index into all() of the distance between two CPUs, by their places in Latencies::cpus(). They differ.
    [[nodiscard]] std::size_t of(std::size_t a, std::size_t b) const {
        if (near_) return static_cast<std::size_t>(near_->between(cpus_[a], cpus_[b]));
        const auto holds_both = [&](const CpuSet& set) {
            return set.contains(cpus_[a]) && set.contains(cpus_[b]);
        };
        std::size_t level = 0;
        while (level < levels_.size() && std::ranges::none_of(levels_[level].groups, holds_both))
            ++level;
        return level;
    }

  private:
    static void fill_in(Distance& distance, std::vector<double> values) {
        distance.pairs = values.size();
        distance.least = std::ranges::min(values);
        distance.most = std::ranges::max(values);
        distance.median = *measure::median(values);
        for (double& value : values)
            value = std::abs(value - distance.median);
        distance.spread = *measure::median(values);
    }
    const std::vector<unsigned>& cpus_;
    const std::vector<LatencyLevel>& levels_;
    std::optional<Nearness> near_;
    std::vector<Distance> all_;
};

/// A way in which the topology divides the machine.
struct Division {
    std::string one, many;                            ///< "llc", "LLC groups"
    std::vector<std::pair<unsigned, CpuSet>> members; ///< by number in CPU-set expressions
};

/// Fine to coarse, without those that hold a single part.
std::vector<Division> divisions_of(const topology::Topology& topology) {
    std::vector<Division> divisions;
    const auto add = [&](std::string one, std::string many, const std::vector<CpuSet>& groups,
                         auto number_of) {
        Division division{std::move(one), std::move(many), {}};
        for (std::size_t i = 0; i < groups.size(); ++i)
            if (!groups[i].empty()) division.members.emplace_back(number_of(i), groups[i]);
        if (division.members.size() > 1) divisions.push_back(std::move(division));
    };
    const auto in_order = [](std::size_t i) { return static_cast<unsigned>(i); };
    std::vector<CpuSet> nodes;
    for (const auto& node : topology.nodes)
        nodes.push_back(node.cpus);
    add("core", "cores", topology.cores, in_order);
    add("L2", "L2 caches", topology.cache_groups(2), in_order);
    add("cluster", "clusters", topology.clusters, in_order);
    add("llc", "LLC groups", topology.llc_groups(), in_order);
    add("die", "dies", topology.dies, in_order);
    add("node", "nodes", nodes, [&](std::size_t i) { return topology.nodes[i].id; });
    add("socket", "sockets", topology.packages,
        [&](std::size_t i) { return topology::package_number(topology, i); });
    return divisions;
}

/// The members that are wholly within the group; no value if the group is not made of members.
CpuSet numbers_within(const Division& division, const CpuSet& group, const CpuSet& measured) {
    CpuSet numbers, covered;
    for (const auto& [number, cpus] : division.members) {
        const auto present = cpus & measured;
        if (present.empty() || !group.contains(present)) continue;
        numbers.insert(number);
        covered |= present;
    }
    return covered == group ? numbers : CpuSet{};
}

std::string part_of(const std::vector<Division>& divisions, const CpuSet& group) {
    for (const auto& division : divisions)
        for (const auto& [number, cpus] : division.members)
            if (cpus.contains(group)) return "part of " + division.one + " " + std::to_string(number);
    return {};
}

/// A CPU that is farther from others than they are from each other at the same distance.
struct OddCpu {
    unsigned cpu = 0;
    double ns = 0;    ///< median to those at that distance
    double usual = 0; ///< of all pairs at that distance
    std::string distance;
};

constexpr double odd_cpu = 1.2;
constexpr double spreads = 8; ///< beyond the median: of normally spread values, more than five sigma
constexpr std::size_t least_peers = 3;

/// The distance at which the CPU has most of its pairs that stand out, or none.
std::optional<OddCpu> oddity_of(const Latencies& latencies, const Distances& distances, std::size_t place) {
    const auto& all = distances.all();
    std::vector<std::vector<double>> values(all.size());
    for (std::size_t other = 0; other < latencies.cpus().size(); ++other)
        if (const auto ns = latencies.at(place, other)) values[distances.of(place, other)].push_back(*ns);
    std::optional<OddCpu> found;
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (values[i].size() < least_peers || all[i].pairs <= values[i].size()) continue;
        const double ns = *measure::median(values[i]);
        if (ns < odd_cpu * all[i].median || ns < all[i].median + spreads / 2 * all[i].spread) continue;
        if (!found || ns / all[i].median > found->ns / found->usual)
            found = OddCpu{latencies.cpus()[place], ns, all[i].median, all[i].name};
    }
    return found;
}

constexpr std::size_t most_told = 3;
constexpr double same = 1.15; ///< as in topology::latency_levels
constexpr double alike = 1.5; ///< what the stops of one mesh or ring differ by, at most
constexpr double almost_all = 0.95;

CpuSet set_of(const Latencies& latencies) {
    CpuSet set;
    for (const unsigned cpu : latencies.cpus())
        set.insert(cpu);
    return set;
}

const Distance* distance_named(const std::vector<Distance>& distances, Near near) {
    const auto found = std::ranges::find(distances, name_of(near), &Distance::name);
    return found == distances.end() ? nullptr : &*found;
}

/// The groups of a level that lie within one LLC group beside others of its CPUs.
std::vector<CpuSet> groups_inside(const LatencyLevel& level, const CpuSet& llc) {
    std::vector<CpuSet> inside;
    for (const auto& group : level.groups)
        if (llc.contains(group)) inside.push_back(group);
    return inside.size() > 1 ? inside : std::vector<CpuSet>();
}

std::string lists_of(const std::vector<CpuSet>& groups) {
    std::string text;
    for (std::size_t i = 0; i < groups.size(); ++i) {
        if (i == most_told) return text + fmt::format(" and {} more", groups.size() - i);
        text += (i == 0 ? "" : i + 1 == groups.size() ? " and " : ", ") + groups[i].to_list();
    }
    return text;
}

/// Tells of levels that the topology has no word for.
void tell_of_levels(const topology::Topology& topology, const CpuSet& measured, LatencyReading& reading) {
    for (std::size_t i = 0; i < reading.levels.size(); ++i) {
        if (!reading.level_names[i].empty()) continue;
        const auto& level = reading.levels[i];
        const auto llcs = topology.llc_groups();
        std::size_t split = 0;
        for (std::size_t llc = 0; llc < llcs.size(); ++llc)
            if (const auto inside = groups_inside(level, llcs[llc] & measured);
                !inside.empty() && split++ == 0)
                reading.findings.push_back(fmt::format("Inside llc {}, CPUs {} are groups of their own, with "
                                                       "{:.0f} ns within: the topology does "
                                                       "not tell.",
                                                       llc, lists_of(inside), level.ns));
        if (split > 1) reading.findings.back() += fmt::format(" So it is in {} LLC groups.", split);
        if (split == 0)
            reading.findings.push_back(fmt::format(
                "CPUs {} are groups with {:.0f} ns within ({}), which the topology does not tell.",
                lists_of(level.groups), level.ns, name_of_group(topology, level.groups.front(), measured)));
    }
}

/// Tells of LLC groups that make no difference, as on virtual machines whose topology is made up.
void tell_of_equal_groups(LatencyReading& reading) {
    const auto* within = distance_named(reading.distances, Near::llc);
    for (const auto near : {Near::node, Near::package, Near::across}) {
        const auto* across = distance_named(reading.distances, near);
        if (within == nullptr || across == nullptr || across->median >= same * within->median) continue;
        reading.findings.push_back(fmt::format(
            "The topology has several LLC groups, but {} ({:.0f} ns) is as near as {} ({:.0f} ns).",
            across->name, across->median, within->name, within->median));
        return;
    }
}

/// Medians are compared, which a few slow pairs do not move.
void tell_of_odd_cpus(const Latencies& latencies, const Distances& distances, LatencyReading& reading) {
    std::vector<OddCpu> odd;
    for (std::size_t place = 0; place < latencies.cpus().size(); ++place)
        if (auto found = oddity_of(latencies, distances, place)) odd.push_back(std::move(*found));
    std::ranges::sort(odd, std::greater{}, [](const OddCpu& one) { return one.ns / one.usual; });
    for (std::size_t i = 0; i < std::min(odd.size(), most_told); ++i)
        reading.findings.push_back(fmt::format("CPU {} is farther away than others are ({}): {:.0f} ns, "
                                               "usual are {:.0f}. An odd stop of the mesh or "
                                               "ring, a slower core, or a program that kept it busy.",
                                               odd[i].cpu, odd[i].distance, odd[i].ns, odd[i].usual));
    if (odd.size() > most_told)
        reading.findings.push_back(fmt::format("So are {} more CPUs, though less.", odd.size() - most_told));
}

/// The finest level that is more than the hardware threads of cores, as far as that is known; the coarsest if
/// there is none.
std::size_t level_to_share(const LatencyReading& reading) {
    for (std::size_t i = 0; i < reading.levels.size(); ++i) {
        const auto& groups = reading.levels[i].groups;
        const bool has_more =
            std::ranges::any_of(groups, [](const CpuSet& group) { return group.count() > 2; });
        if (has_more && !reading.level_names[i].starts_with("cores")) return i;
    }
    return reading.levels.size() - 1;
}

/// The line of a policy that goes by these figures. Hardware threads of a core are nearest of all.
std::string measured_key(const topology::Topology& topology) {
    const bool has_smt =
        std::ranges::any_of(topology.cores, [](const CpuSet& core) { return core.count() > 1; });
    return fmt::format("'together: measured'{}, or 'near: measured' if they are of several processes",
                       has_smt ? " (with 'smt: avoid', if they compute as much as they talk)" : "");
}

/// How far apart the nearest two CPUs are, and almost all: a few slow pairs may be noise, fast ones are none.
struct Range {
    double nearest = 0, almost_farthest = 0;
};

Range range_of(const Latencies& latencies) {
    std::vector<double> all;
    for (std::size_t a = 0; a < latencies.cpus().size(); ++a)
        for (std::size_t b = 0; b < a; ++b)
            if (const auto ns = latencies.at(a, b)) all.push_back(*ns);
    if (all.empty()) return {};
    const auto place = std::ceil(almost_all * static_cast<double>(all.size() - 1));
    const auto farthest = all.begin() + static_cast<std::ptrdiff_t>(place);
    const double nearest = std::ranges::min(all);
    std::ranges::nth_element(all, farthest);
    return {nearest, *farthest};
}

std::string meaning_without_groups(const LatencyReading& reading, const Range& range,
                                   const topology::Topology* topology) {
    const auto& farthest = reading.distances.back();
    if (reading.is_uniform && reading.not_measured > 0) // alike: that says nothing of the others
        return fmt::format("A message takes about as long between the two CPUs of each pair that was "
                           "measured, {:.0f} ns one way: as far as this "
                           "shows, it makes no difference which of them threads share that talk to each "
                           "other. Nothing is known of {}.",
                           farthest.median, counted(reading.not_measured, "pair"));
    if (reading.distances.size() == 1 && farthest.pairs == 1)
        return fmt::format("A message takes {:.0f} ns one way between these two CPUs{}.", farthest.median,
                           topology == nullptr ? "" : " (" + farthest.name + ")");
    if (!reading.is_uniform)
        return fmt::format(
            "There are no groups that belong together, but large differences. A message takes {:.0f} ns one "
            "way between the nearest two of these CPUs, and {:.0f} between some of the others: what threads "
            "that talk to each other can gain is a matter of single pairs.{}",
            range.nearest, range.almost_farthest,
            topology == nullptr
                ? ""
                : " A policy finds the nearest with the line " + measured_key(*topology) + ".");
    return fmt::format(
        "A message takes about as long between any two of these CPUs, {:.0f} ns one way: which of "
        "them threads share that talk to each other makes no difference.",
        farthest.median);
}

/// The line of a policy that puts threads into groups with this name; by figures where none knows the groups.
std::string key_for(std::string_view level_name, const topology::Topology& topology) {
    const auto has = [&](std::string_view word) { return level_name.find(word) != std::string_view::npos; };
    if (has("LLC groups")) return " A policy's 'bind: llc', the default, sees to that.";
    if (has("nodes")) return " A policy's 'bind: node' sees to that.";
    if (has("sockets")) return " A policy's 'together: socket' sees to that.";
    return " No group that a policy can name is like these. By these figures the line " +
           measured_key(topology) + " puts such threads next to each other.";
}

std::string meaning_of(const LatencyReading& reading, const Range& range,
                       const topology::Topology* topology) {
    if (reading.distances.empty()) return {};
    if (reading.levels.empty()) return meaning_without_groups(reading, range, topology);
    const auto at = level_to_share(reading);
    const auto& level = reading.levels[at];
    const auto& name = reading.level_names[at];
    const double farthest = reading.distances.back().median;
    if (name.starts_with("cores"))
        return fmt::format(
            "Only the hardware threads of one core are nearer to each other ({:.0f} ns one way, all "
            "others {:.0f}). They share the core's units, too: put threads there that talk much and "
            "compute little (smt: share), and leave all others where there is room.",
            level.ns, farthest);
    auto text = fmt::format(
        "Threads that talk to each other belong in one group of level {}{}: a message takes {:.0f} "
        "ns one way there",
        at + 1, name.empty() ? "" : " (" + name + ")", level.ns);
    if (at + 1 < reading.levels.size())
        text += fmt::format(", {:.0f} ns to the next group", reading.levels[at + 1].ns);
    text += fmt::format(", and {:.0f} ns to the farthest.", farthest);
    return topology == nullptr ? text : text.append(key_for(name, *topology));
}

} // namespace

std::string name_of_group(const topology::Topology& topology, const CpuSet& group, const CpuSet& measured) {
    const auto divisions = divisions_of(topology);
    std::string equal, united;
    for (const auto& division : divisions) {
        const auto numbers = numbers_within(division, group, measured);
        if (numbers.empty()) continue;
        const auto name = division.one + " " + numbers.to_list();
        if (numbers.count() == 1)
            equal += (equal.empty() ? "" : " = ") + name;
        else
            united = name; // the coarsest is the shortest
    }
    if (!equal.empty()) return equal;
    return united.empty() ? part_of(divisions, group) : united;
}

std::string name_of_level(const topology::Topology& topology, const topology::LatencyLevel& level,
                          const CpuSet& measured) {
    std::string names;
    for (const auto& division : divisions_of(topology)) {
        bool is_same = true;
        for (const auto& group : level.groups)
            is_same = is_same && numbers_within(division, group, measured).count() == 1;
        if (is_same) names += (names.empty() ? "" : " = ") + division.many;
    }
    return names;
}

LatencyReading read_latencies(const Latencies& latencies, const topology::Topology* topology) {
    LatencyReading reading;
    reading.levels = topology::latency_levels(latencies);
    const auto measured = set_of(latencies);
    for (const auto& level : reading.levels)
        reading.level_names.push_back(topology == nullptr ? "" : name_of_level(*topology, level, measured));
    const Distances distances(latencies, reading.levels, topology);
    std::ranges::copy_if(distances.all(), std::back_inserter(reading.distances),
                         [](const Distance& one) { return one.pairs > 0; });
    if (topology != nullptr) {
        tell_of_levels(*topology, measured, reading);
        tell_of_equal_groups(reading);
    }
    tell_of_odd_cpus(latencies, distances, reading);
    const auto range = range_of(latencies);
    const auto count = latencies.cpus().size();
    reading.not_measured = count * (count - std::min<std::size_t>(count, 1)) / 2 - latencies.measured();
    reading.is_uniform = reading.levels.empty() && range.almost_farthest <= alike * range.nearest;
    reading.meaning = meaning_of(reading, range, topology);
    for (const auto& distance : reading.distances)
        reading.summary += fmt::format("{}{} {:.0f} ns", reading.summary.empty() ? "" : ", ", distance.name,
                                       distance.median);
    reading.summary +=
        reading.is_uniform       ? reading.not_measured > 0 ? "; uniform where measured" : "; uniform"
        : reading.levels.empty() ? "; no groups"
                                 : "; " + counted(reading.levels.size(), "level") + " of groups";
    return reading;
}

} // namespace affinityd::experiments
