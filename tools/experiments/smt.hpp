// SPDX-License-Identifier: Apache-2.0
// Two threads on one core against two cores, by kind of load. Source: Bendersky, "C++11 threads, affinity and
// hyperthreading".
#pragma once

#include "experiments/frame.hpp"
#include "experiments/nearness.hpp"

#include <array>
#include <expected>

namespace affinityd::experiments {

/// `accum` leaves most of a core idle, as each addition waits for the one before; `sine` keeps it busy.
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

/// How a load runs.
enum class Company {
    alone,    ///< one thread
    cores,    ///< two threads on two cores
    siblings, ///< two threads on two hardware threads of one core
};
inline constexpr std::array companies{Company::alone, Company::cores, Company::siblings};
[[nodiscard]] std::string_view name_of(Company company); ///< "alone", "two cores", "one core"
[[nodiscard]] std::string_view key_of(Company company);  ///< "alone", "cores", "siblings": for JSON

/// Which CPUs they run on. A company that the machine cannot do has no pair, and a sentence why.
struct SmtSeats {
    unsigned alone = 0;
    std::optional<CpuPair> cores;    ///< one of them is `alone`
    std::optional<CpuPair> siblings; ///< one of them is `alone`
    std::string no_cores, no_siblings;
    /// Both CPUs; for `alone` that one twice. No value: the machine cannot do it.
    [[nodiscard]] std::optional<CpuPair> of(Company company) const;
};

/// Chooses from `cpus`: a core with two hardware threads if there is one, and a second core as near as can be
/// to it. A Refusal: fewer than two CPUs.
[[nodiscard]] std::expected<SmtSeats, Refusal> smt_seats(const topology::Topology& topology,
                                                         const CpuSet& cpus);

struct SmtHow {
    unsigned rounds = 25;           ///< in each, every load runs once in every company
    std::size_t numbers = 1U << 20; ///< floats of each thread; the document has 100 million
};

/// A load in a company. `seconds` are CPU time, the mean of both threads.
struct SmtCase : Case {
    Load load = Load::accum;
    Company company = Company::alone;
    CpuPair cpus;
    std::vector<double> first{},
        second{}; ///< CPU time of each thread; the first ran on cpus.a; `second` is empty for `alone`
};

/// The `smt` that one load wants, by its slowdown on one core.
struct LoadVerdict {
    Load load = Load::accum;
    std::string_view verdict = "not measured"; ///< "smt: share", "smt: avoid", "no difference shown"
    /// How much more two threads of one core do than one after the other: the document's 945 ms for what
    /// takes one 1080 ms is 0.14.
    measure::Comparison gain_together{};
};
/// Up to so much longer is "smt: share": they are hardly in each other's way.
inline constexpr double little_slowdown = 0.05;
[[nodiscard]] std::string_view smt_verdict(const measure::Comparison& longer);

struct SmtResult : Reading {
    std::vector<SmtCase> cases; ///< by load; each is compared with its load alone
    std::vector<LoadVerdict> loads{};
    SmtHow how;
};

/// Each run begins for both threads at the same moment. A run during which the scheduler took a thread off
/// its CPU is taken again, up to as many times as there are rounds. An Error: a thread cannot be made or
/// pinned.
[[nodiscard]] Result<SmtResult> measure_smt(const SmtSeats& seats, const SmtHow& how, Run& run);
/// About how long that takes, from experience.
[[nodiscard]] double estimated_seconds(const SmtSeats& seats, const SmtHow& how);
/// Compares the cases, and says what they mean. Pure.
void read_smt(SmtResult& result, const SmtSeats& seats);

} // namespace affinityd::experiments
