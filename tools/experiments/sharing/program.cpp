// SPDX-License-Identifier: Apache-2.0
#include "experiments/sharing/program.hpp"

#include "base/clock.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <optional>

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
    std::optional<CacheReads> reads;
};

void add_to(std::atomic<float>& value, unsigned additions) {
    for (unsigned i = 0; i < additions; ++i)
        value = value + 1.0F;
}

void* work(void* given) {
    auto& part = *static_cast<Part*>(given);
    if (!part.counts) {
        add_to(*part.value, part.additions);
        return nullptr;
    }
    const auto counter = MissCounter::open();
    add_to(*part.value, part.additions);
    if (counter) part.reads = counter->read();
    return nullptr;
}

/// Threads that are made with the CPUs they run on. One that pins itself first waits for its turn on the CPU
/// where it was made, which takes a run several percent longer; and one that is pinned by who made it may
/// have ended by then.
class Threads {
  public:
    Threads() = default;
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;
    ~Threads() { join(); }

    /// 0, or an error number; EINVAL: it may not run there. `part` must outlive the thread.
    int start(Part& part, const CpuSet& cpus) {
        pthread_attr_t attributes{};
        if (const int code = ::pthread_attr_init(&attributes); code != 0) return code;
        const auto words = cpus.words();
        int code = ::pthread_attr_setaffinity_np(&attributes, words.size_bytes(),
                                                 reinterpret_cast<const cpu_set_t*>(words.data()));
        pthread_t thread{};
        if (code == 0) code = ::pthread_create(&thread, &attributes, work, &part);
        ::pthread_attr_destroy(&attributes);
        if (code == 0) started_[count_++] = thread;
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
            parts[i] = {&variables.of(placed.placing, i), additions, counts, {}};
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
