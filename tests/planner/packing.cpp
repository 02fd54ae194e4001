// SPDX-License-Identifier: Apache-2.0
#include "packing.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace affinityd::planner::test {

Packing::Packing(std::vector<double> fixed, std::vector<Piece> pieces)
    : fixed_(std::move(fixed)), pieces_(std::move(pieces)), spots_(pieces_.size()) {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
        if (pieces_[i].family >= families_.size()) families_.resize(pieces_[i].family + 1);
        families_[pieces_[i].family].push_back(i);
    }
    load_ = fixed_;
    for (std::size_t i = 0; i < pieces_.size(); ++i)
        put(i, 0, 1);
}

void Packing::start_at(const std::vector<std::size_t>& spots) {
    for (std::size_t i = 0; i < pieces_.size(); ++i)
        move(i, spots[i]);
}

void Packing::start_greedily() {
    std::vector<std::size_t> order(families_.size());
    std::iota(order.begin(), order.end(), 0U);
    std::vector<double> sums;
    for (const auto& family : families_) {
        double sum = 0;
        for (const auto piece : family)
            sum += pieces_[piece].weight;
        sums.push_back(sum);
    }
    std::ranges::stable_sort(order, [&](auto a, auto b) { return sums[a] > sums[b]; });
    for (std::size_t i = 0; i < pieces_.size(); ++i)
        put(i, spots_[i], -1);
    for (const auto family : order)
        if (!families_[family].empty()) settle(families_[family]);
}

double Packing::busiest() const { return load_.empty() ? 0 : *std::ranges::max_element(load_); }

double Packing::anneal(std::mt19937& random, unsigned steps, double enough) {
    double best = busiest();
    std::vector<std::size_t> movable;
    for (std::size_t i = 0; i < pieces_.size(); ++i)
        if (pieces_[i].spots.size() > 1 && pieces_[i].weight > 0) movable.push_back(i);
    if (movable.empty() || best <= enough) return best;
    scale_ = best;
    double energy = 0;
    for (const double load : load_)
        energy += eighth_power(load);
    for (unsigned step = 0; step < steps && best > enough; ++step) {
        const double heat = 0.1 * std::pow(0.002, static_cast<double>(step) / steps);
        const auto piece = movable[random() % movable.size()];
        const auto spot = random() % pieces_[piece].spots.size();
        const double more = try_move(piece, spot);
        const double before = std::pow(energy, 0.125), after = std::pow(std::max(0.0, energy + more), 0.125);
        if (after > before && std::exp((before - after) / heat) * 4294967295.0 < random()) {
            undo();
            continue;
        }
        energy += more;
        if (after < before) best = std::min(best, busiest());
    }
    return best;
}

void Packing::put(std::size_t piece, std::size_t spot, double sign) {
    for (const auto& [core, part] : pieces_[piece].spots[spot].parts)
        load_[core] += sign * part * pieces_[piece].weight;
    spots_[piece] = spot;
}

void Packing::move(std::size_t piece, std::size_t spot) {
    put(piece, spots_[piece], -1);
    put(piece, spot, 1);
}

double Packing::eighth_power(double load) const {
    const double x = load / scale_ * (load / scale_);
    return x * x * x * x;
}

std::pair<double, std::size_t> Packing::least(std::size_t piece, std::size_t group) const {
    std::pair<double, std::size_t> best{HUGE_VAL, 0};
    for (std::size_t i = 0; i < pieces_[piece].spots.size(); ++i) {
        const auto& spot = pieces_[piece].spots[i];
        if (spot.group != group) continue;
        double harm = 0, sum = 0;
        for (const auto& [core, part] : spot.parts) {
            harm = std::max(harm, load_[core] + part * pieces_[piece].weight);
            sum += load_[core] * part;
        }
        best = std::min(best, {harm + sum * 1e-6, i});
    }
    return best;
}

void Packing::settle(std::vector<std::size_t> family) {
    std::ranges::stable_sort(family, [&](auto a, auto b) { return pieces_[a].weight > pieces_[b].weight; });
    std::size_t groups = 0, best_group = 0;
    for (const auto& spot : pieces_[family.front()].spots)
        groups = std::max(groups, spot.group + 1);
    double best = HUGE_VAL;
    for (std::size_t group = 0; group < groups && groups > 1; ++group) {
        const double harm = settle_in(family, group);
        for (const auto piece : family)
            put(piece, spots_[piece], -1);
        if (harm < best) best_group = group;
        best = std::min(best, harm);
    }
    settle_in(family, best_group);
}

double Packing::settle_in(const std::vector<std::size_t>& family, std::size_t group) {
    double harm = 0;
    for (const auto piece : family) {
        const auto [here, spot] = least(piece, group);
        harm = std::max(harm, here);
        put(piece, spot, 1);
    }
    return harm;
}

double Packing::try_move(std::size_t piece, std::size_t spot) {
    undo_.clear();
    const auto group = pieces_[piece].spots[spot].group;
    if (pieces_[piece].spots[spots_[piece]].group == group) return change(piece, spot);
    double more = 0;
    for (const auto other : families_[pieces_[piece].family]) {
        const auto at = spots_[other];
        more += leave(other);
        undo_.emplace_back(other, at);
    }
    for (const auto other : families_[pieces_[piece].family])
        more += enter(other, least(other, group).second);
    return more;
}

double Packing::change(std::size_t piece, std::size_t spot) {
    undo_.emplace_back(piece, spots_[piece]);
    return leave(piece) + enter(piece, spot);
}

double Packing::shift(std::size_t piece, std::size_t spot, double sign) {
    double more = 0;
    for (const auto& [core, part] : pieces_[piece].spots[spot].parts)
        more -= eighth_power(load_[core]);
    put(piece, spot, sign);
    for (const auto& [core, part] : pieces_[piece].spots[spot].parts)
        more += eighth_power(load_[core]);
    return more;
}

void Packing::undo() {
    for (const auto& [piece, spot] : undo_)
        move(piece, spot);
}

} // namespace affinityd::planner::test
