// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <random>
#include <utility>
#include <vector>

/// The search that plans are measured against. The search knows nothing of policies: pieces of work, each
/// with the places that it may have; what is sought is the lowest busiest core.
namespace affinityd::planner::test {

/// A place for a piece of work: the cores, and the part of the work that each does.
struct Spot {
    std::size_t group = 0; ///< pieces of one family are all in spots of one group
    std::vector<std::pair<unsigned, double>> parts;
};

struct Piece {
    double weight = 0; ///< CPUs
    std::vector<Spot> spots;
    std::size_t family = 0;
};

class Packing {
  public:
    /// `fixed`: the load of each core that no piece makes.
    Packing(std::vector<double> fixed, std::vector<Piece> pieces);

    /// Puts all pieces where they are now.
    void start_at(const std::vector<std::size_t>& spots);
    /// Puts the pieces one after the other where they do least harm: families by their weight, and the
    /// heaviest piece of each first.
    void start_greedily();
    [[nodiscard]] double busiest() const;
    /// Simulated annealing of as many steps; the lowest busiest core seen. Stops at `enough`.
    double anneal(std::mt19937& random, unsigned steps, double enough);

  private:
    void put(std::size_t piece, std::size_t spot, double sign);
    void move(std::size_t piece, std::size_t spot);
    [[nodiscard]] double eighth_power(double load) const;
    /// The spot of this group where a piece that is nowhere does least harm.
    [[nodiscard]] std::pair<double, std::size_t> least(std::size_t piece, std::size_t group) const;
    /// Puts pieces that are nowhere into the group that suits them best.
    void settle(std::vector<std::size_t> family);
    double settle_in(const std::vector<std::size_t>& family, std::size_t group);
    /// Moves a piece, and its family if it leaves the group; the change in energy.
    double try_move(std::size_t piece, std::size_t spot);
    double change(std::size_t piece, std::size_t spot);
    double leave(std::size_t piece) { return shift(piece, spots_[piece], -1); }
    double enter(std::size_t piece, std::size_t spot) { return shift(piece, spot, 1); }
    double shift(std::size_t piece, std::size_t spot, double sign);
    void undo();

    std::vector<double> fixed_, load_; ///< by core
    std::vector<Piece> pieces_;
    std::vector<std::size_t> spots_; ///< of each piece
    std::vector<std::vector<std::size_t>> families_;
    std::vector<std::pair<std::size_t, std::size_t>> undo_; ///< pieces, and the spots that they had
    double scale_ = 1;
};

} // namespace affinityd::planner::test
