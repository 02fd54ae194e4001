// SPDX-License-Identifier: Apache-2.0
#include "planner/goodness.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <ranges>
#include <utility>

#include <fmt/ranges.h>

namespace affinityd::planner {

namespace {

/// More sets than these are not compared with each other.
constexpr std::size_t most_sets = 64;
constexpr double good_enough = 0.9; ///< of the balance

/// An index that grows with the weight, by its nine most significant bits.
std::size_t index_of(Weight weight) {
    constexpr unsigned bits = 9;
    const auto value = static_cast<std::uint64_t>(weight);
    const unsigned width = static_cast<unsigned>(std::bit_width(value));
    const unsigned shift = width > bits ? width - bits : 0;
    return (std::size_t{shift} << (bits - 1)) + (value >> shift);
}

std::string cpus_text(Weight load) {
    return fmt::format("{:.2f}", static_cast<double>(load) / static_cast<double>(one_cpu));
}

} // namespace

LeastBusiest::LeastBusiest(std::vector<Confined> work, CpuLoad fixed)
    : work_(std::move(work)), fixed_(std::move(fixed)), least_(fixed_.busiest()) {
    CpuSet all;
    for (const auto& confined : work_) {
        all |= confined.cpus;
        if (sets_.size() < most_sets) sets_.push_back(confined.cpus);
    }
    sets_.push_back(std::move(all));
    std::ranges::sort(sets_);
    sets_.erase(std::unique(sets_.begin(), sets_.end()), sets_.end());
    std::erase_if(sets_, &CpuSet::empty);
}

bool LeastBusiest::step(const std::function<bool()>& out_of_time) {
    while (!sets_.empty()) {
        if (cores_ == 0)
            begin_set();
        else if (next_ < work_.size())
            add(work_[next_++]);
        else
            end_set();
        if (out_of_time()) break;
    }
    return sets_.empty();
}

void LeastBusiest::begin_set() {
    CpuSet cores;
    total_ = 0;
    for (const unsigned cpu : sets_.back()) {
        cores.insert(fixed_.core_of(cpu));
        total_ += fixed_.on_cpu(cpu);
    }
    cores_ = cores.count();
    next_ = 0;
    std::ranges::fill(pieces_, Alike{});
}

void LeastBusiest::add(const Confined& confined) {
    if (!sets_.back().contains(confined.cpus)) return;
    total_ += confined.total;
    for (const Weight piece : confined.pieces) {
        if (piece <= 0) continue;
        const auto index = index_of(piece);
        if (index >= pieces_.size()) pieces_.resize(index + 1);
        auto& [count, least] = pieces_[index];
        least = count++ == 0 ? piece : std::min(least, piece);
    }
}

/// Of n pieces on m cores, some core has at least k + 1 of the k * m + 1 largest.
void LeastBusiest::end_set() {
    least_ = std::max(least_, total_ / static_cast<Weight>(cores_));
    std::size_t before = 0; // larger ones
    for (const auto& [count, least] : pieces_ | std::views::reverse) {
        if (count == 0) continue;
        const auto k = (before + count - 1) / cores_;
        if (k * cores_ >= before) least_ = std::max(least_, static_cast<Weight>(k + 1) * least);
        before += count;
    }
    cores_ = 0;
    sets_.pop_back();
}

double Goodness::balance() const {
    if (busiest <= 0) return 1;
    return std::min(1.0, static_cast<double>(least) / static_cast<double>(busiest));
}

std::string to_string(const Goodness& goodness) {
    std::vector<std::string> parts;
    if (goodness.shared) {
        auto names = goodness.shared->policies;
        std::ranges::sort(names);
        const auto tasks = names.size();
        names.erase(std::ranges::unique(names).begin(), names.end());
        parts.push_back(fmt::format("{} share the core of CPU {} while that of CPU {} is idle",
                                    names.size() == 1 ? fmt::format("{} tasks of {}", tasks, names.front())
                                                      : fmt::format("{}", fmt::join(names, " and ")),
                                    goodness.shared->core, goodness.shared->free));
    } else if (goodness.balance() < good_enough) {
        parts.push_back(fmt::format("the busiest core has {} CPUs of work where {} would do",
                                    cpus_text(goodness.busiest), cpus_text(goodness.least)));
    }
    if (goodness.off_node > 0)
        parts.push_back(fmt::format("{} not on the node of their interface",
                                    goodness.off_node == 1 ? "1 task is"
                                                           : fmt::format("{} tasks are", goodness.off_node)));
    return fmt::format("{}", fmt::join(parts, "; "));
}

} // namespace affinityd::planner
