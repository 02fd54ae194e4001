// SPDX-License-Identifier: Apache-2.0
#include "experiments/smt/times.hpp"

#include "experiments/frame/pinned_thread.hpp"
#include "experiments/frame/supervision.hpp"
#include "experiments/frame/thread_time.hpp"

#include <array>
#include <atomic>
#include <cmath>
#include <random>

namespace affinityd::experiments {

namespace {

constexpr double accum_seconds = 1.3e-9, sine_seconds = 6e-9; ///< for one number

struct LoadRun {
    double seconds = 0;
    bool was_interrupted = false;
};

/// Where threads wait for each other, so that all begin at once.
class StartLine {
  public:
    explicit StartLine(unsigned threads) : missing_(threads) {}
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

Result<Runs> run_together(const CompanyTimes& what, const std::array<std::vector<float>, 2>& numbers) {
    Runs runs{};
    const unsigned threads = what.company == Company::alone ? 1 : 2;
    StartLine line(threads);
    std::array<PinnedThread, 2> running;
    const std::array cpus{what.cpus.a, what.cpus.b};
    for (unsigned i = 0; i < threads; ++i) {
        auto thread =
            PinnedThread::start(CpuSet{cpus[i]}, [&, i] { runs[i] = timed(what.load, numbers[i], line); });
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

} // namespace

Result<SmtTimes> measure_smt(const SmtSeats& seats, const SmtHow& how, Run& run) {
    SmtTimes times{.how = how};
    for (const Load load : loads)
        for (const Company company : companies)
            if (const auto cpus = seats.of(company))
                times.companies.push_back({load, company, *cpus, {}, {}});
    std::array<std::vector<float>, 2> numbers{numbers_for_loads(how.numbers), numbers_for_loads(how.numbers)};
    const std::size_t all = how.rounds * times.companies.size();
    std::size_t done = 0, repeats_left = all;
    for (unsigned round = 0; round < how.rounds; ++round)
        for (std::size_t i = 0; i < times.companies.size(); ++i) {
            run.advance(done++, all);
            auto& what = times.companies[(round + i) % times.companies.size()];
            auto runs = run_together(what, numbers);
            while (runs && ((*runs)[0].was_interrupted || (*runs)[1].was_interrupted) && repeats_left > 0 &&
                   !run.is_stopped()) {
                --repeats_left;
                ++times.interrupted;
                runs = run_together(what, numbers);
            }
            if (!runs) return std::unexpected(runs.error());
            if (run.is_stopped()) {
                times.is_whole = false;
                return times;
            }
            what.first.push_back((*runs)[0].seconds);
            if (what.company != Company::alone) what.second.push_back((*runs)[1].seconds);
        }
    return times;
}

double estimated_seconds(const SmtSeats& seats, const SmtHow& how) {
    unsigned runs = 0;
    for (const Company company : companies)
        if (seats.of(company)) ++runs;
    return runs * how.rounds * static_cast<double>(how.numbers) * (accum_seconds + sine_seconds) +
           static_cast<double>(how.numbers) * 4e-9;
}

namespace {

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

} // namespace affinityd::experiments
