// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/statistics.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::planner {

/// Growth of the counters of one policy's programs over one span of time.
struct Effect {
    double seconds = 0;
    double cpu_seconds = 0;            ///< of its control groups, or of its processes in groups of others
    double bytes = 0;                  ///< carried by its interfaces
    double wait_seconds = 0;           ///< its threads were ready and had no CPU
    double migrations = 0;             ///< of its threads, from CPU to CPU
    double reads = 0, local_reads = 0; ///< of sockets, counted; 0 where nothing counts
    double errors = 0;                 ///< entries of its units in the journal, priority err and graver
    Effect& operator+=(const Effect& other);
};
using Spans = std::span<const Effect>;

/// Sides that are in force in turn, in rounds of equal length. A block is one round of each, in an order that
/// turns round with each block, so that a drift favours none. The first seconds of a round do not count:
/// tasks and connections move. Pure: it is told what happened, and says which side is to be in force.
class Alternation {
  public:
    Alternation(std::size_t sides, double round); ///< in seconds

    [[nodiscard]] std::size_t present() const { return order_[place_]; } ///< the side to be in force
    /// The growth that comes now does not count.
    [[nodiscard]] bool is_settling() const;
    /// The growth of the counters since the last call, all of it under present(). True: the round is over;
    /// count() or repeat() is to be called.
    [[nodiscard]] bool add(const Effect& growth);
    void count();
    void repeat();
    [[nodiscard]] const Effect& growth() const { return growth_; } ///< of the present round
    /// The side takes no more turns. Between blocks.
    void leave_out(std::size_t side);
    [[nodiscard]] bool is_out(std::size_t side) const { return std::ranges::count(order_, side) == 0; }
    [[nodiscard]] std::size_t sides() const { return rounds_.size(); }
    [[nodiscard]] const std::vector<Effect>& rounds(std::size_t side) const { return rounds_[side]; }
    [[nodiscard]] std::size_t blocks() const { return blocks_; } ///< that are over
    [[nodiscard]] double left() const;                           ///< seconds of this round, about

  private:
    std::vector<std::vector<Effect>> rounds_; ///< of each side
    std::vector<std::size_t> order_;          ///< of those that take turns, in the present block
    std::size_t place_ = 0, blocks_ = 0;
    double round_, settled_ = 0; ///< seconds of a round; of this one, before it counts
    Effect growth_;
};

/// A row of the table before/after.
struct Figure {
    std::string_view name, unit;
    std::optional<measure::Interval> before, after; ///< no value: too few samples, or nothing counts
    std::optional<measure::Interval> change;        ///< relative: -0.1 is 10 % less
};

struct Judgement {
    enum class Verdict { unknown, better, worse, no_difference };
    Verdict verdict = Verdict::unknown; ///< that: too few rounds, or too little traffic
    std::string sentence;               ///< with figures
    std::vector<Figure> figures;
};
[[nodiscard]] std::string_view to_string(Judgement::Verdict verdict);

/// Goes by the differences of rounds inside blocks. Each side needs four. The cost decides: CPU
/// time per GB, or per second where no traffic goes over interfaces; where that is less and the wait for a
/// CPU grows, nothing is known. Errors that rise make it worse at once. All other figures are only shown.
/// Pure.
[[nodiscard]] Judgement judge(Spans before, Spans after);
/// How much more CPU time per byte the rounds after take.
[[nodiscard]] measure::Comparison compare_costs(Spans before, Spans after, unsigned comparisons);
/// True if the threads wait for a CPU for longer, by more than a hundredth of the CPU time that they take.
[[nodiscard]] bool waits_longer(Spans before, Spans after, unsigned comparisons = 1);
/// True if the cost of its traffic can be told.
[[nodiscard]] bool has_traffic(const Effect& round);
/// Says that errors rose, and how far: at least to double, and as they do by chance with a probability of at
/// most `chance`. "": they did not. A single round after may be enough.
[[nodiscard]] std::string harm(Spans before, Spans after, double chance = 0.005);

} // namespace affinityd::planner
