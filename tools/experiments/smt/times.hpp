// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "experiments/smt/seats.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace affinityd::experiments {

/// The two kinds of work of the document (Bendersky, "C++11 threads, affinity and hyperthreading"): one that
/// leaves most of a core idle, as each addition waits for the one before, and one that keeps it busy.
enum class Load {
    accum, ///< adds all numbers up
    sine,  ///< adds their sines up
};
inline constexpr std::array loads{Load::accum, Load::sine};
[[nodiscard]] std::string_view name_of(Load load); ///< "accum", "sin": as in the document

/// Does it once over all numbers; the sum.
[[nodiscard]] float work(Load load, std::span<const float> numbers);

/// `count` numbers between 0 and 100, the same ones each time.
[[nodiscard]] std::vector<float> numbers_for_loads(std::size_t count);

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
