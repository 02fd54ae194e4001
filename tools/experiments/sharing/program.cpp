// SPDX-License-Identifier: Apache-2.0
#include "experiments/sharing/program.hpp"

#include "base/clock.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <optional>
#include <utility>

#include <pthread.h>
#include <sched.h>

namespace affinityd::experiments {

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
