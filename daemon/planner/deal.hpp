// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"
#include "planner/cpu_load.hpp"

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace affinityd::planner {

/// What the busiest core must gain for anybody to move.
[[nodiscard]] Weight least_gain(Weight load);

/// Pieces of work, each on one of the places of its kind, and the search for a better deal of them: one whose
/// busiest cores have less. Who can stay, stays: nobody moves for a small gain.
///
/// It first looks for chains: a piece takes the place of another, which goes on to a third. Then it deals all
/// of them afresh, the heaviest first, and keeps of that what is needed, if it is clearly better.
class Deal {
  public:
    struct Part {
        unsigned core; ///< its first CPU
        Weight cpus;   ///< how many of the place's are on it
    };
    struct Place {
        unsigned group; ///< pieces of one family are all on places of one group
        Weight cpus;    ///< how many it has
        std::vector<Part> parts;
    };
    static constexpr unsigned no_family = ~0U;
    static constexpr std::size_t largest_family = 4'000; ///< a larger one would not be moved in any case
    struct Piece {
        TaskId task;                  ///< decides between pieces that are alike
        Weight weight = 0, error = 0; ///< `error`: how far the weight may be from the truth
        unsigned kind = 0, place = 0;
        unsigned family = no_family; ///< without any: it stays in its group
    };

    unsigned add_kind(std::vector<Place> places);
    /// Its weight is counted already in the loads that start() gets.
    unsigned add(const Piece& piece);
    /// `pieces`: those of a family, by the numbers that they will get; the heaviest first.
    unsigned add_family(std::vector<unsigned> pieces);
    /// `load`: of all cores, with the pieces. `errors`: of the work that is there without being a piece.
    void start(const CpuLoad& load, const LoadErrors& errors);
    /// A step, of a few milliseconds at most; false: there is no more to do.
    bool improve();

    [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }
    /// On a place of a kind.
    [[nodiscard]] const std::vector<unsigned>& on(unsigned kind, unsigned place) const {
        return kinds_[kind].pieces[place];
    }

  private:
    struct Kind {
        std::vector<Place> places;
        std::vector<std::vector<unsigned>> pieces; ///< by place
    };
    /// A chain of moves that is being tried.
    struct Trial {
        Weight limit;                                    ///< no core that it touches may have more afterwards
        unsigned steps;                                  ///< moves that are left
        unsigned looks;                                  ///< at places, that are left
        unsigned family_looks;                           ///< the same for families
        std::vector<std::pair<unsigned, unsigned>> done; ///< pieces, and the places that they had
        [[nodiscard]] bool has_moved(unsigned piece) const;
    };
    enum class Stage : std::uint8_t { chains, afresh, polish, choose, done };

    [[nodiscard]] const Place& place_of(unsigned piece) const;
    [[nodiscard]] Weight busiest_with(unsigned piece, unsigned place) const;
    /// What could leave a core, and how many pieces are on it.
    struct Movable {
        Weight work = 0;
        unsigned pieces = 0;
    };
    [[nodiscard]] Movable can_leave(unsigned core, const Trial& trial) const;
    [[nodiscard]] Weight worth_moving(unsigned core, Weight load, std::size_t moves = 0) const;
    [[nodiscard]] std::vector<unsigned> candidates(unsigned core, Trial& trial) const;
    bool relieve_busiest();
    bool relieve(unsigned core, Trial& trial);
    bool move_one(unsigned core, const std::vector<unsigned>& pieces, Trial& trial);
    bool move_chain(unsigned core, const std::vector<unsigned>& pieces, Trial& trial);
    bool move_family(const std::vector<unsigned>& pieces, Trial& trial);
    void put(unsigned piece, unsigned place);
    void weigh(unsigned piece, int sign);
    Weight settle(const std::vector<unsigned>& family, unsigned group);
    void undo(Trial& trial, std::size_t to);
    void deal_afresh();
    bool has_another_round();
    void choose();
    void try_all_cores();

    std::vector<Piece> pieces_;
    std::vector<Kind> kinds_;
    std::vector<std::vector<unsigned>> families_;
    std::vector<Weight> cores_; ///< the load of each, by its first CPU
    std::vector<double> vary_;  ///< by core: the squares of the errors of what is no piece
    std::vector<std::vector<std::pair<unsigned, unsigned>>> places_on_; ///< by core: kinds and places
    std::set<unsigned> left_;                                           ///< cores that may be relieved yet
    std::vector<unsigned> first_, chained_; ///< the place of each piece at the start, and after the chains
    /// The best of several fresh deals. What is on the busiest core of one comes earlier in the next.
    struct Fresh {
        unsigned rounds = 0;
        Weight busiest = 0;
        std::vector<unsigned> places, blame; ///< of each piece
    } fresh_;
    Stage stage_ = Stage::chains;
};

} // namespace affinityd::planner
