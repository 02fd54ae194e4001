// SPDX-License-Identifier: Apache-2.0
#include "experiments/sharing/times.hpp"

#include "base/clock.hpp"
#include "experiments/frame/supervision.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <optional>
#include <utility>

#include <pthread.h>
#include <sched.h>

namespace affinityd::experiments {

namespace {

constexpr unsigned warm_runs = 1, counted_runs = 3; ///< of each placing
constexpr double usual_addition_seconds = 30e-9;    ///< with two threads that take a line from each other

/// Runs that nobody times, but that count misses.
Result<void> count_misses(PlacingTimes& placing, const SharingHow& how, const Run& run) {
    for (unsigned i = 0; i < counted_runs && !run.is_stopped(); ++i) {
        const auto counted = run_sharing(placing.placed, how.additions, true);
        if (!counted) return std::unexpected(counted.error());
        if (!counted->reads) continue;
        if (!placing.reads) placing.reads.emplace();
        *placing.reads += *counted->reads;
    }
    return {};
}

} // namespace

Result<SharingTimes> measure_sharing(const std::vector<PlacedThreads>& placings, const SharingHow& how,
                                     Run& run) {
    SharingTimes times{.how = how};
    for (const auto& placed : placings)
        times.placings.push_back({placed, {}, {}});
    if (const auto counter = MissCounter::open(); !counter) times.no_counters = counter.error();
    const std::size_t all = (how.rounds + warm_runs) * placings.size();
    std::size_t done = 0;
    for (unsigned round = 0; round < how.rounds + warm_runs; ++round)
        for (std::size_t i = 0; i < placings.size(); ++i) {
            run.advance(done++, all);
            auto& placing = times.placings[(round + i) % placings.size()];
            const auto ended = run_sharing(placing.placed, how.additions, false);
            if (!ended) return std::unexpected(ended.error());
            if (run.is_stopped()) {
                times.is_whole = false;
                return times;
            }
            if (round >= warm_runs) placing.seconds.push_back(ended->seconds);
        }
    for (auto& placing : times.placings)
        if (times.no_counters.empty())
            if (auto counted = count_misses(placing, how, run); !counted)
                return std::unexpected(counted.error());
    return times;
}

double estimated_seconds(std::size_t placings, const SharingHow& how) {
    const double run = 0.0005 + usual_addition_seconds * how.additions;
    return run * static_cast<double>(placings * (how.rounds + warm_runs + counted_runs));
}

namespace {

/// 128: two lines of x86, whose prefetcher takes pairs of them; one of some arm64.
constexpr std::size_t apart_bytes = 128;

struct Variables {
    alignas(apart_bytes) std::array<std::atomic<float>, 2> in_one_line{};
    alignas(apart_bytes) std::atomic<float> a{0};
    alignas(apart_bytes) std::atomic<float> b{0};

    std::atomic<float>& of(Placing placing, std::size_t thread) {
        if (placing == Placing::one_line) return in_one_line[thread % 2];
        return thread % 2 == 0 ? a : b;
    }
};

/// The work of one thread.
struct Part {
    std::atomic<float>* value = nullptr;
    unsigned additions = 0;
    bool counts = false;
    std::optional<CacheReads> reads{};
    std::atomic<bool> is_placed{false}; ///< or will not be
};

void add_to(std::atomic<float>& value, unsigned additions) {
    for (unsigned i = 0; i < additions; ++i)
        value = value + 1.0F;
}

void* work(void* given) {
    auto& part = *static_cast<Part*>(given);
    std::optional<MissCounter> counter;
    if (part.counts)
        if (auto opened = MissCounter::open()) counter = std::move(*opened);
    add_to(*part.value, part.additions);
    if (counter) part.reads = counter->read();
    // A thread that has ended has no number: who pins it then pins itself.
    part.is_placed.wait(false, std::memory_order_acquire);
    return nullptr;
}

/// Threads that who makes them pins, as the document's program does: how long one has run elsewhere by then
/// is part of the figure. One that pins itself first waits for its turn on the CPU where it was made, which
/// takes a run several percent longer.
class Threads {
  public:
    Threads() = default;
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;
    ~Threads() { join(); }

    /// 0, or an error number; EINVAL: it may not run there. `part` must outlive the thread.
    int start(Part& part, const CpuSet& cpus) {
        pthread_t thread{};
        if (const int code = ::pthread_create(&thread, nullptr, work, &part); code != 0) return code;
        started_[count_++] = thread;
        const auto words = cpus.words();
        const int code = ::pthread_setaffinity_np(thread, words.size_bytes(),
                                                  reinterpret_cast<const cpu_set_t*>(words.data()));
        part.is_placed.store(true, std::memory_order_release);
        part.is_placed.notify_one();
        return code;
    }
    void join() {
        while (count_ > 0)
            ::pthread_join(started_[--count_], nullptr);
    }

  private:
    std::array<pthread_t, sharing_threads> started_{};
    std::size_t count_ = 0;
};

} // namespace

Result<SharingRun> run_sharing(const PlacedThreads& placed, unsigned additions, bool counts) {
    Variables variables;
    std::array<Part, sharing_threads> parts;
    SharingRun run;
    const double begin = monotonic_seconds();
    {
        Threads threads;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            parts[i].value = &variables.of(placed.placing, i);
            parts[i].additions = additions;
            parts[i].counts = counts;
            const int code = threads.start(parts[i], placed.cpus[i]);
            if (code == EINVAL)
                return fail("a thread of this program may not run there", "CPU " + placed.cpus[i].to_list(),
                            code);
            if (code != 0) return fail("cannot make a thread", {}, code);
        }
    }
    run.seconds = monotonic_seconds() - begin;
    for (const auto& part : parts) {
        if (!part.reads) continue;
        if (!run.reads) run.reads.emplace();
        *run.reads += *part.reads;
    }
    return run;
}

} // namespace affinityd::experiments
