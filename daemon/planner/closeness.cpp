// SPDX-License-Identifier: Apache-2.0
#include "planner/closeness.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace affinityd::planner {

namespace {

using Groups = std::vector<CpuSet>;

constexpr std::uint32_t level_step = 1'000'000; ///< more than any NUMA distance adds

/// How many CPUs a group has on average.
double size_of(const Groups& groups) {
    std::size_t sum = 0;
    for (const auto& group : groups)
        sum += group.count();
    return static_cast<double>(sum) / static_cast<double>(groups.size());
}

/// What the machine is made of, fine to coarse: a node may be part of a package, or have several.
std::vector<Groups> levels_of(const topology::Topology& topology) {
    std::vector<Groups> levels{topology.cores};
    unsigned highest = 0;
    for (const auto& cache : topology.caches)
        highest = std::max(highest, cache.level);
    for (unsigned level = 2; level < highest; ++level)
        levels.push_back(topology.cache_groups(level));
    levels.push_back(topology.clusters);
    levels.push_back(topology.llc_groups());
    levels.push_back(topology.dies);
    Groups nodes;
    for (const auto& node : topology.nodes)
        nodes.push_back(node.cpus);
    levels.push_back(std::move(nodes));
    for (const auto* groups : {&topology.packages, &topology.books, &topology.drawers})
        levels.push_back(*groups);
    std::erase_if(levels, &Groups::empty);
    std::ranges::stable_sort(levels, {}, size_of);
    return levels;
}

/// The place of each CPU's node in Topology::nodes, or their number: not known.
std::vector<std::size_t> node_places(const topology::Topology& topology, const std::vector<unsigned>& cpus) {
    std::vector<std::size_t> places;
    for (const unsigned number : cpus) {
        const auto* cpu = topology.find(number);
        const auto at = cpu == nullptr || !cpu->node
                            ? topology.nodes.end()
                            : std::ranges::find(topology.nodes, *cpu->node, &topology::Node::id);
        places.push_back(static_cast<std::size_t>(at - topology.nodes.begin()));
    }
    return places;
}

/// The NUMA distance of two nodes; 0: not recorded.
std::uint32_t numa_distance(const topology::Topology& topology, std::size_t from, std::size_t to) {
    if (from == topology.nodes.size() || to >= topology.nodes[from].distance.size()) return 0;
    return std::min(topology.nodes[from].distance[to], level_step - 1);
}

using StepValues = std::map<std::uint32_t, std::vector<std::uint64_t>>; ///< what was measured, by topology

std::uint64_t median(std::vector<std::uint64_t>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
}

/// Of steps of which nothing was measured, in the topology's order: evenly between all that is closer and the
/// next that is farther; beyond the farthest in steps of one, since nobody knows how much farther.
std::map<std::uint32_t, std::uint64_t> guesses_for(StepValues& known) {
    std::map<std::uint32_t, std::uint64_t> guesses;
    std::uint64_t closer = 0; // the greatest of closer steps
    for (auto step = known.begin(); step != known.end();) {
        if (!step->second.empty()) {
            closer = std::max(closer, median(step->second));
            ++step;
            continue;
        }
        const auto next =
            std::find_if(step, known.end(), [](const auto& one) { return !one.second.empty(); });
        const auto parts = static_cast<std::uint64_t>(std::distance(step, next)) + 1;
        if (next == known.end()) // not closer than any pair that was measured
            for (const auto& [number, values] : known)
                for (const auto value : values)
                    closer = std::max(closer, value);
        const auto farther =
            next == known.end() ? closer + parts : std::max(closer, std::ranges::min(next->second));
        for (std::uint64_t part = 1; step != next; ++step, ++part)
            guesses[step->first] = closer + (farther - closer) * part / parts;
    }
    return guesses;
}

} // namespace

Closeness::Distance Closeness::femtoseconds(double ns) {
    return static_cast<Distance>(std::min(std::round(ns * 1e6), static_cast<double>(farthest)));
}

Closeness::Closeness(const topology::Topology& topology, std::shared_ptr<const machine::LatencyMatrix> matrix)
    : online_(topology.online), matrix_(std::move(matrix)) {
    const auto cpus = online_.to_vector();
    count_ = cpus.size();
    place_.resize(cpus.empty() ? 0 : cpus.back() + 1U, nowhere);
    for (std::size_t i = 0; i < count_; ++i)
        place_[cpus[i]] = i;
    const bool is_complete = matrix_ != nullptr && take_measured();
    if (is_complete) return; // as where all was measured, or a part of each two groups
    const auto steps = steps_of(topology);
    if (matrix_ == nullptr)
        distances_.assign(steps.begin(), steps.end());
    else
        estimate(steps);
}

/// By topology, of each pair.
std::vector<std::uint32_t> Closeness::steps_of(const topology::Topology& topology) const {
    const auto cpus = online_.to_vector();
    const auto levels = levels_of(topology);
    std::vector<std::uint32_t> steps(count_ * count_,
                                     static_cast<std::uint32_t>(levels.size() + 1) * level_step);
    for (std::size_t level = levels.size(); level-- > 0;)
        for (const auto& group : levels[level]) {
            auto members = (group & online_).to_vector();
            std::ranges::transform(members, members.begin(),
                                   [&](unsigned cpu) { return static_cast<unsigned>(place(cpu)); });
            for (const unsigned a : members)
                for (const unsigned b : members)
                    steps[a * count_ + b] = static_cast<std::uint32_t>(level + 1) * level_step;
        }
    const auto nodes = node_places(topology, cpus);
    for (std::size_t a = 0; a < count_; ++a)
        for (std::size_t b = 0; b < count_; ++b)
            steps[a * count_ + b] =
                a == b ? 0 : steps[a * count_ + b] + numa_distance(topology, nodes[a], nodes[b]);
    return steps;
}

/// True: of all pairs.
bool Closeness::take_measured() {
    const auto& known = matrix_->completed();
    std::vector<std::optional<std::size_t>> rows; // of each online CPU, in `known`
    for (const unsigned cpu : online_) {
        const auto row = std::ranges::lower_bound(known.cpus(), cpu);
        const bool is_there = row != known.cpus().end() && *row == cpu;
        rows.push_back(is_there ? std::optional(static_cast<std::size_t>(row - known.cpus().begin()))
                                : std::nullopt);
    }
    distances_.assign(count_ * count_, 0);
    bool are_all = true;
    for (std::size_t b = 0; b < count_; ++b)
        for (std::size_t a = 0; a < b; ++a) {
            const auto ns = rows[a] && rows[b] ? known.at(*rows[a], *rows[b]) : std::nullopt;
            are_all = are_all && ns;
            if (ns)
                distances_[a * count_ + b] = distances_[b * count_ + a] =
                    std::max(Distance{1}, femtoseconds(*ns));
        }
    return are_all;
}

/// Of pairs of which nothing was measured, what was measured of others that are as close by topology tells;
/// where there is no such one, something between those that are closer and those that are farther by
/// topology.
void Closeness::estimate(const std::vector<std::uint32_t>& steps) {
    StepValues known; // by topology
    for (std::size_t i = 0; i < distances_.size(); ++i) {
        if (i % (count_ + 1) == 0) continue; // a CPU and itself
        auto& values = known[steps[i]];
        if (distances_[i] != 0) values.push_back(distances_[i]);
    }
    const auto guesses = guesses_for(known);
    auto values = guesses; // of each step
    for (auto& [step, measured] : known)
        if (!measured.empty()) values[step] = median(measured);
    is_guess_.assign(guesses.empty() ? 0 : distances_.size(), false);
    for (std::size_t i = 0; i < distances_.size(); ++i) {
        if (i % (count_ + 1) == 0 || distances_[i] != 0) continue;
        if (guesses.contains(steps[i])) is_guess_[i] = true;
        distances_[i] = values[steps[i]];
    }
}

bool Closeness::is_guess(unsigned a, unsigned b) const {
    const std::size_t from = place(a), to = place(b);
    return !is_guess_.empty() && from != nowhere && to != nowhere && is_guess_[from * count_ + to];
}

Closeness::Distance Closeness::mean(std::span<const unsigned> a, std::span<const unsigned> b) const {
    Distance sum = 0;
    for (const unsigned from : a)
        for (const unsigned to : b)
            sum += between(from, to);
    return sum / (a.size() * b.size());
}

Closeness::Distance Closeness::between(const CpuSet& a, const CpuSet& b) const {
    const unsigned from = a.first(), to = b.first();
    if (from == a.last() && to == b.last()) return between(from, to);
    return mean(a.to_vector(), b.to_vector());
}

Closeness::Distance Closeness::usual(const CpuSet& a, const CpuSet& b) const {
    if (matrix_ == nullptr) return between(a, b);
    const auto each = [&](unsigned from, unsigned to) {
        if (from == to) return Distance{0};
        const bool is_known = matrix_->completed().ns(from, to).has_value();
        return is_known ? femtoseconds(matrix_->usual_ns(from, to)) : between(from, to);
    };
    if (a.first() == a.last() && b.first() == b.last()) return each(a.first(), b.first());
    Distance sum = 0;
    for (const unsigned from : a)
        for (const unsigned to : b)
            sum += each(from, to);
    return sum / (a.count() * b.count());
}

std::optional<double> Closeness::ns(unsigned a, unsigned b) const {
    return matrix_ == nullptr ? std::nullopt : matrix_->measured().ns(a, b);
}

bool Closeness::is_of(const topology::Topology& topology,
                      const std::shared_ptr<const machine::LatencyMatrix>& matrix) const {
    return matrix == matrix_ && topology.online == online_;
}

} // namespace affinityd::planner
