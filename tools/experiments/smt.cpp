// SPDX-License-Identifier: Apache-2.0
#include "experiments/smt.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/format.h>

namespace affinityd::experiments {

namespace {

constexpr double accum_seconds = 1.3e-9, sine_seconds = 6e-9; ///< for one number

/// The nearest CPU of another core; the lowest of equally near ones.
std::optional<unsigned> second_core(const Nearness& nearness, const CpuSet& cpus, unsigned first) {
    std::optional<unsigned> best;
    for (const unsigned cpu : cpus) {
        if (cpu == first || nearness.between(cpu, first) == Near::core) continue;
        if (!best || nearness.between(cpu, first) < nearness.between(*best, first)) best = cpu;
    }
    return best;
}

// Not inlined, so that neither knows what the sum is for.
[[gnu::noinline]] float accumulate(std::span<const float> numbers) {
    float sum = 0;
    for (const float number : numbers)
        sum += number;
    return sum;
}

[[gnu::noinline]] float accumulate_sines(std::span<const float> numbers) {
    float sum = 0;
    for (const float number : numbers)
        sum += std::sin(number);
    return sum;
}

struct LoadRun {
    double seconds = 0;
    bool was_interrupted = false;
};

/// Where threads wait for each other, so that all begin at once.
class StartLine {
  public:
    explicit StartLine(int threads) : missing_(threads) {}
    void arrive_and_wait() {
        missing_.fetch_sub(1, std::memory_order_acq_rel);
        while (missing_.load(std::memory_order_acquire) > 0 && !off_.load(std::memory_order_relaxed)) {
        }
    }
    /// The others will not come.
    void call_off() { off_.store(true, std::memory_order_relaxed); }

  private:
    std::atomic<int> missing_;
    std::atomic<bool> off_{false};
};

LoadRun timed(Load load, std::span<const float> numbers, StartLine& line) {
    volatile float kept = 0; // the sum is wanted
    line.arrive_and_wait();
    const auto before = preemptions();
    const double begin = thread_seconds();
    kept = work(load, numbers);
    static_cast<void>(kept);
    const double end = thread_seconds();
    return {end - begin, preemptions() != before};
}

using Runs = std::array<LoadRun, 2>;

Result<Runs> run_together(const SmtCase& one, const std::array<std::vector<float>, 2>& numbers) {
    Runs runs{};
    const std::size_t threads = one.company == Company::alone ? 1 : 2;
    StartLine line(static_cast<int>(threads));
    std::array<PinnedThread, 2> running; // awaited at the end
    const std::array cpus{one.cpus.a, one.cpus.b};
    for (std::size_t i = 0; i < threads; ++i) {
        auto thread =
            PinnedThread::start(CpuSet{cpus[i]}, [&, i] { runs[i] = timed(one.load, numbers[i], line); });
        if (!thread) {
            line.call_off();
            return std::unexpected(thread.error());
        }
        running[i] = std::move(*thread);
    }
    for (auto& thread : running)
        thread.join();
    return runs;
}

/// The kind of work that a load stands for, and the meaning of its verdict for a policy.
std::string load_words(const LoadVerdict& load) {
    const std::string kind = load.load == Load::accum
                                 ? "Work that waits most of its time for its own last result (accum): "
                                 : "Work that keeps the units of a core busy (sin): ";
    if (load.verdict == "smt: share")
        return kind + "smt: share, two on one core are hardly in each other's way.";
    if (load.verdict == "smt: avoid")
        return kind + "smt: avoid where each answer's time counts" +
               (load.gain_together.verdict == measure::Verdict::more
                    ? "; smt: share where only the sum of the work does, since two on one core get more done."
                    : ".");
    if (load.verdict == "no difference shown")
        return kind + "no difference shown, so smt: share, the default, may stay.";
    return kind + "too few rounds for a verdict.";
}

/// The verdict of its load, from a case on one core. Two take the time of one run on one core; one after the
/// other takes two runs alone.
void judge(const SmtCase& one, LoadVerdict& load, SmtResult& result) {
    load.verdict = smt_verdict(one.longer);
    const auto& longer = one.longer.change;
    if (one.longer.verdict == measure::Verdict::not_enough || longer.low <= -1) return;
    const auto gain = [](double part) { return 2 / (1 + part) - 1; };
    auto& together = load.gain_together;
    together.change = {gain(longer.estimate), gain(longer.high), gain(longer.low)};
    together.verdict = !together.change.excludes_zero() ? measure::Verdict::none_shown
                       : together.change.low > 0        ? measure::Verdict::more
                                                        : measure::Verdict::less;
    result.findings.push_back(
        together.verdict == measure::Verdict::none_shown
            ? fmt::format("two {} on one core together get as much done as one after the other, as far as "
                          "this shows",
                          name_of(one.load))
            : fmt::format("two {} on one core together get {} {} done than one after the other",
                          name_of(one.load), size_words(together.change),
                          together.verdict == measure::Verdict::more ? "more" : "less"));
}

} // namespace

std::string_view name_of(Load load) { return load == Load::accum ? "accum" : "sin"; }

float work(Load load, std::span<const float> numbers) {
    return load == Load::accum ? accumulate(numbers) : accumulate_sines(numbers);
}

std::vector<float> numbers_for_loads(std::size_t count) {
    std::vector<float> numbers(count);
    std::mt19937 engine(1); // NOLINT(cert-msc51-cpp): the same numbers each time are wanted
    for (auto& number : numbers)
        number = static_cast<float>(engine() >> 8U) / static_cast<float>(1U << 24U) * 100;
    return numbers;
}

std::string_view name_of(Company company) {
    constexpr std::array names{"alone", "two cores", "one core"};
    return names[static_cast<std::size_t>(company)];
}

std::string_view key_of(Company company) {
    constexpr std::array keys{"alone", "cores", "siblings"};
    return keys[static_cast<std::size_t>(company)];
}

std::optional<CpuPair> SmtSeats::of(Company company) const {
    if (company == Company::alone) return CpuPair{alone, alone};
    return company == Company::cores ? cores : siblings;
}

std::expected<SmtSeats, Refusal> smt_seats(const topology::Topology& topology, const CpuSet& cpus) {
    if (cpus.count() < 2) return std::unexpected(Refusal::one_cpu);
    const Nearness nearness(topology);
    SmtSeats seats;
    seats.siblings = nearness.first_pair(cpus, Near::core);
    seats.alone = seats.siblings ? seats.siblings->a : cpus.first();
    if (!seats.siblings) seats.no_siblings = sentence_of(Refusal::no_smt, cpus);
    if (const auto other = second_core(nearness, cpus, seats.alone))
        seats.cores = ordered(seats.alone, *other);
    else
        seats.no_cores = sentence_of(Refusal::one_core, cpus);
    return seats;
}

Result<SmtResult> measure_smt(const SmtSeats& seats, const SmtHow& how, Run& run) {
    SmtResult result;
    result.how = how;
    for (const Load load : loads)
        for (const Company company : companies)
            if (const auto cpus = seats.of(company)) result.cases.push_back({{}, load, company, *cpus});
    const std::array<std::vector<float>, 2> numbers{numbers_for_loads(how.numbers),
                                                    numbers_for_loads(how.numbers)};
    const std::size_t all = how.rounds * result.cases.size();
    std::size_t done = 0;
    const auto whole = by_turns(std::span(result.cases), how.rounds, run, [&](SmtCase& one) -> Result<void> {
        run.advance(done++, all);
        auto runs = run_together(one, numbers);
        while (runs && ((*runs)[0].was_interrupted || (*runs)[1].was_interrupted) && result.disturbed < all &&
               !run.is_stopped()) {
            ++result.disturbed;
            runs = run_together(one, numbers);
        }
        if (!runs) return std::unexpected(runs.error());
        const double first = (*runs)[0].seconds, second = (*runs)[1].seconds;
        one.first.push_back(first);
        if (one.company != Company::alone) one.second.push_back(second);
        one.seconds.push_back(one.company == Company::alone ? first : (first + second) / 2);
        return {};
    });
    if (!whole) return std::unexpected(whole.error());
    result.is_whole = *whole;
    return result;
}

double estimated_seconds(const SmtSeats& seats, const SmtHow& how) {
    const auto runs =
        std::ranges::count_if(companies, [&](Company company) { return seats.of(company).has_value(); });
    return static_cast<double>(runs) * how.rounds * static_cast<double>(how.numbers) *
               (accum_seconds + sine_seconds) +
           static_cast<double>(how.numbers) * 4e-9;
}

std::string_view smt_verdict(const measure::Comparison& longer) {
    if (longer.verdict == measure::Verdict::not_enough) return "not measured";
    if (longer.change.low > little_slowdown) return "smt: avoid";
    return longer.change.high <= little_slowdown ? "smt: share" : "no difference shown";
}

void read_smt(SmtResult& result, const SmtSeats& seats) {
    const auto compared =
        std::ranges::count_if(result.cases, [](const SmtCase& one) { return one.company != Company::alone; });
    for (const Load load : loads) {
        auto& verdict = result.loads.emplace_back(LoadVerdict{load});
        result.summary += fmt::format("{}{}:", result.summary.empty() ? "" : "; ", name_of(load));
        const SmtCase* alone = nullptr;
        for (auto& one : result.cases) {
            if (one.load != load) continue;
            if (one.company == Company::alone) alone = &one;
            compare(one, &one == alone ? nullptr : alone,
                    static_cast<unsigned>(std::max<std::ptrdiff_t>(1, compared)));
            result.summary += fmt::format(" {} {},", name_of(one.company), ms_words(one.seconds));
            if (one.company == Company::alone) continue;
            result.findings.push_back(
                fmt::format("{} on {}: each {}", name_of(load),
                            one.company == Company::cores ? "two cores" : "two hardware threads of one core",
                            longer_words(one.longer, "alone")));
            if (one.company == Company::siblings) judge(one, verdict, result);
        }
        result.summary += fmt::format(" {}", verdict.verdict);
        result.meaning += (result.meaning.empty() ? "" : " ") + load_words(verdict);
    }
    if (!seats.siblings)
        result.meaning = "The key smt has nothing to decide here: " + seats.no_siblings +
                         ". With smt: share and with smt: avoid, the CPUs are the same.";
}

} // namespace affinityd::experiments
