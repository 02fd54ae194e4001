// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/statistics.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::planner {

/// Growth of the counters of one policy's programs over one span of time.
struct Effect {
    double seconds = 0;
    double cpu_seconds = 0;            ///< of its control groups
    double bytes = 0;                  ///< carried by its interfaces
    double wait_seconds = 0;           ///< its threads were ready and had no CPU
    double migrations = 0;             ///< of its threads, from CPU to CPU
    double reads = 0, local_reads = 0; ///< of sockets, counted; 0 where nothing counts
    double retransmits = 0;            ///< TCP segments sent again, of the machine's network namespace
    double errors = 0;                 ///< entries of its units in the journal, priority err and graver
    Effect& operator+=(const Effect& other);
};

/// One row of the table before/after.
struct Figure {
    std::string_view name, unit;
    std::optional<measure::Interval> before, after; ///< no value: too few samples, or nothing counts
    std::optional<measure::Interval> change;        ///< relative: -0.1 is 10 % less
    bool is_better_if_less = true;
};

struct Judgement {
    enum class Verdict {
        unknown, ///< too few samples, or too little traffic
        better,
        worse,
        no_difference
    };
    Verdict verdict = Verdict::unknown;
    std::string sentence; ///< with figures
    std::vector<Figure> figures;
};
[[nodiscard]] std::string_view to_string(Judgement::Verdict verdict);

/// Judges spans after a change by those before it; each side needs four, of equal length. The cost decides:
/// CPU time per GB, or per second where no traffic goes over interfaces. Errors or retransmits that rise make
/// it worse at once. All other figures are only shown. Pure.
[[nodiscard]] Judgement judge(std::span<const Effect> before, std::span<const Effect> after);

/// CPU seconds per 10^9 bytes of each span that has traffic enough to tell.
[[nodiscard]] std::vector<double> costs_per_gigabyte(std::span<const Effect> spans);

/// Says that errors or retransmits rose, and how far: at least to double, and as they do by chance with a
/// probability of at most `chance`. "": they did not. One span after the change may be enough.
[[nodiscard]] std::string harm(std::span<const Effect> before, std::span<const Effect> after,
                               double chance = 0.005);

} // namespace affinityd::planner
