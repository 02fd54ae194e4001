// SPDX-License-Identifier: Apache-2.0
#include "experiments/cache/times.hpp"

#include "experiments/cache/base_vector.hpp"
#include "experiments/frame/pinned_thread.hpp"
#include "experiments/frame/supervision.hpp"
#include "experiments/frame/thread_time.hpp"
#include "host/scheduler.hpp"

#include <algorithm>
#include <optional>

namespace affinityd::experiments {

namespace {

constexpr double short_quantum_ms = 20; ///< a longer one is likely to be disturbed again on a busy machine
constexpr double warm_seconds = 0.002, calibration_seconds = 0.02;
constexpr std::uint64_t steps_at_once = 1U << 16U; ///< some milliseconds at most: how soon it can be stopped
constexpr double bytes_per_second = 8e9;           ///< when a working set is read in order
constexpr double shuffle_seconds = 4e-9;           ///< for one of its bytes

/// The thread that is interrupted, and who interrupts it: one thread that does the work of both by turns,
/// since caches do not know the difference, and neither waits for the other on a busy machine.
class Worker {
  public:
    Worker(const CacheSeats& seats, BaseVector vector, const BaseVector& polluter, const Run& run)
        : seats_(seats), vector_(std::move(vector)), polluter_(polluter), run_(run) {}

    /// How long a step takes where the cache is kept.
    Result<double> calibrate() {
        if (auto moved = go_to(seats_.home); !moved) return std::unexpected(moved.error());
        vector_.touch(vector_.bytes(), run_);
        vector_.walk(std::min(vector_.lines(), 4 * steps_at_once));
        const double begin = thread_seconds();
        std::uint64_t steps = 0;
        double spent = 0;
        do {
            vector_.walk(steps_at_once);
            steps += steps_at_once;
            spent = thread_seconds() - begin;
        } while (spent < calibration_seconds && !run_.is_stopped());
        step_seconds_ = spent / static_cast<double>(steps);
        return step_seconds_;
    }

    struct Quantum {
        double seconds = 0;
        bool was_disturbed = false;
    };
    /// One interruption and the quantum after it. That one is always at home, so that nothing but what is in
    /// the caches differs: for a move, the thread was elsewhere before.
    Result<Quantum> take(Place place, double quantum_seconds) {
        const unsigned before = *seats_.of(place);
        if (is_move(place)) { // nothing of the working set is to be at home already
            if (auto moved = go_to(seats_.home); !moved) return std::unexpected(moved.error());
            polluter_.touch(place == Place::group ? 2 * seats_.sizes.own : polluter_.bytes(), run_);
        }
        if (auto moved = go_to(before); !moved) return std::unexpected(moved.error());
        vector_.touch(vector_.bytes(), run_);
        walk_for(warm_seconds);
        if (place == Place::displaced) polluter_.touch(2 * seats_.sizes.own, run_);
        if (place == Place::emptied) polluter_.touch(polluter_.bytes(), run_);
        if (auto moved = go_to(seats_.home); !moved) return std::unexpected(moved.error());
        const auto switches = preemptions();
        const double begin = thread_seconds();
        walk_for(quantum_seconds);
        return Quantum{thread_seconds() - begin, preemptions() != switches};
    }

  private:
    static Result<void> go_to(unsigned cpu) {
        if (const int code = host::set_affinity(0, CpuSet{cpu}); code != 0)
            return fail("a thread of this program may not run there", "CPU " + std::to_string(cpu), code);
        return {};
    }
    void walk_for(double seconds) {
        auto left = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(seconds / step_seconds_));
        while (left > 0 && !run_.is_stopped()) {
            const auto now = std::min(left, steps_at_once);
            vector_.walk(now);
            left -= now;
        }
    }

    const CacheSeats& seats_;
    BaseVector vector_;
    const BaseVector& polluter_;
    const Run& run_;
    double step_seconds_ = 1e-9;
};

std::vector<Place> possible_places(const CacheSeats& seats) {
    std::vector<Place> possible;
    for (const Place place : places)
        if (seats.of(place)) possible.push_back(place);
    return possible;
}

/// All cells of one working set; `cells` are its own.
Result<void> measure_footprint(Worker& worker, std::span<CacheCell> cells, CacheTimes& times, Run& run,
                               std::uint64_t all) {
    if (auto step = worker.calibrate(); !step) return std::unexpected(step.error());
    for (unsigned round = 0; round < times.how.rounds; ++round)
        for (std::size_t i = 0; i < cells.size(); ++i) {
            auto& cell = cells[(i + round) % cells.size()];
            auto quantum = worker.take(cell.place, cell.quantum_ms / 1e3);
            if (quantum && quantum->was_disturbed && cell.quantum_ms <= short_quantum_ms && !run.is_stopped())
                quantum = worker.take(cell.place, cell.quantum_ms / 1e3);
            if (quantum && quantum->was_disturbed) ++times.disturbed;
            if (!quantum) return std::unexpected(quantum.error());
            if (run.is_stopped()) {
                times.is_whole = false;
                return {};
            }
            cell.seconds.push_back(quantum->seconds);
            run.advance(run.done() + static_cast<std::uint64_t>(cell.quantum_ms * 1e3) + 1, all);
        }
    return {};
}

Result<void> measure_all(const CacheSeats& seats, CacheTimes& times, Run& run) {
    auto polluter = BaseVector::make(times.how.polluter_bytes, run);
    if (!polluter) return std::unexpected(polluter.error());
    std::uint64_t all = 0;
    for (const auto& cell : times.cells)
        all += times.how.rounds * (static_cast<std::uint64_t>(cell.quantum_ms * 1e3) + 1);
    const auto of_each = times.cells.size() / times.how.footprints.size();
    for (std::size_t i = 0; i < times.how.footprints.size() && times.is_whole; ++i) {
        auto vector = BaseVector::make(times.how.footprints[i], run);
        if (!vector) return std::unexpected(vector.error());
        if (run.is_stopped()) { // what was made is not to be walked
            times.is_whole = false;
            return {};
        }
        Worker worker(seats, std::move(*vector), *polluter, run);
        const std::span cells(times.cells.data() + i * of_each, of_each);
        if (auto done = measure_footprint(worker, cells, times, run, all); !done) return done;
    }
    return {};
}

} // namespace

Result<CacheTimes> measure_cache(const CacheSeats& seats, const CacheHow& how, Run& run) {
    CacheTimes times{.how = how};
    for (const auto footprint : how.footprints)
        for (const double quantum : how.quanta_ms)
            for (const Place place : possible_places(seats))
                times.cells.push_back({footprint, quantum, place, {}});
    if (times.cells.empty()) return times;
    Result<void> outcome;
    auto thread = PinnedThread::start(CpuSet{seats.home}, [&] { outcome = measure_all(seats, times, run); });
    if (!thread) return std::unexpected(thread.error());
    thread->join();
    if (!outcome) return std::unexpected(outcome.error());
    return times;
}

double estimated_seconds(const CacheSeats& seats, const CacheHow& how) {
    const auto polluter = static_cast<double>(how.polluter_bytes);
    const double fill = polluter / bytes_per_second;
    double seconds = polluter * shuffle_seconds;
    for (const auto footprint : how.footprints) {
        seconds += calibration_seconds + static_cast<double>(footprint) * shuffle_seconds;
        for (const Place place : possible_places(seats))
            for (const double quantum : how.quanta_ms)
                seconds += how.rounds *
                           (quantum / 1e3 + warm_seconds + static_cast<double>(footprint) / bytes_per_second +
                            (place >= Place::emptied && place != Place::group ? fill : 0));
    }
    return seconds;
}

} // namespace affinityd::experiments
