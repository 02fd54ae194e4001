// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiments/smt/times.hpp"
#include "measure/statistics.hpp"

#include <optional>
#include <string>
#include <vector>

namespace affinityd::experiments {

/// Which `smt` a kind of load wants.
enum class SmtVerdict {
    share,        ///< two on one core are in each other's way by no more than a little
    avoid,        ///< each takes clearly longer
    none_shown,   ///< the interval allows both: no difference shown
    not_measured, ///< no core with two hardware threads, or too few rounds
};
[[nodiscard]] std::string_view name_of(SmtVerdict verdict); ///< "smt: share"
/// Up to so much longer is "a little".
inline constexpr double little_slowdown = 0.05;

struct CompanyFigures {
    Load load = Load::accum;
    Company company = Company::alone;
    CpuPair cpus;
    std::optional<measure::Interval> seconds; ///< mean over both threads; no value: too few rounds
    double first = 0, second = 0;             ///< mean of each thread, seconds; second is 0 for `alone`
    measure::Comparison longer;               ///< than alone; of `alone` without meaning
};

struct LoadReading {
    Load load = Load::accum;
    SmtVerdict verdict = SmtVerdict::not_measured;
    /// How much more two threads of one core do than one after the other, relative: the document's 945 ms for
    /// what takes one 1080 ms is 0.14. No value: not measured.
    std::optional<double> gain_together;
};

struct SmtReading {
    std::vector<CompanyFigures> companies; ///< as measured
    std::vector<LoadReading> loads;
    std::vector<std::string> findings; ///< sentences
    std::string meaning;               ///< one paragraph: what to write into a policy
};

/// Pure. All comparisons with `alone` hold together in 95 of 100 experiments.
[[nodiscard]] SmtReading read_smt(const SmtTimes& times, const SmtSeats& seats);

/// The verdict from a slowdown on one core alone.
[[nodiscard]] SmtVerdict verdict_of(const measure::Comparison& longer);

/// One line for the history.
[[nodiscard]] std::string summary_of(const SmtReading& reading);

} // namespace affinityd::experiments
