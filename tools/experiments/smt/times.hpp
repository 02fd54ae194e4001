// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "experiments/smt/loads.hpp"
#include "experiments/smt/seats.hpp"

#include <cstddef>
#include <vector>

namespace affinityd::experiments {

class Run;

struct SmtHow {
    unsigned rounds = 25;           ///< in each, every load runs once in every company
    std::size_t numbers = 1U << 20; ///< floats of each thread; the document has 100 million
};

/// One load in one company: CPU time of each thread, seconds by round. `second` is empty for `alone`.
struct CompanyTimes {
    Load load = Load::accum;
    Company company = Company::alone;
    CpuPair cpus; ///< `first` ran on a
    std::vector<double> first, second;
};

struct SmtTimes {
    std::vector<CompanyTimes> companies; ///< by load; companies that the machine cannot do are not there
    SmtHow how;
    std::size_t interrupted = 0; ///< runs taken again, because another program had run in between
    bool is_whole = true;        ///< all rounds were made before somebody stopped it
};

/// Each run begins for both threads at the same moment. One during which the scheduler took a thread off its
/// CPU is taken again, up to as many times as there are rounds. An Error: a thread cannot be made or pinned.
[[nodiscard]] Result<SmtTimes> measure_smt(const SmtSeats& seats, const SmtHow& how, Run& run);

/// About how long that takes, from experience.
[[nodiscard]] double estimated_seconds(const SmtSeats& seats, const SmtHow& how);

} // namespace affinityd::experiments
