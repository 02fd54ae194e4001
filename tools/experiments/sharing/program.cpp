// SPDX-License-Identifier: Apache-2.0
#include "experiments/sharing/program.hpp"

#include "base/clock.hpp"
#include "host/scheduler.hpp"

#include <array>
#include <atomic>
#include <system_error>
#include <thread>

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

struct ThreadEnd {
    int refused = 0; ///< errno of its mask
    std::optional<CacheReads> reads;
};

void add_to(std::atomic<float>& value, unsigned additions) {
    for (unsigned i = 0; i < additions; ++i)
        value = value + 1.0F;
}

/// Pins itself, and so does not wait for a CPU on which another one works already before the next is made.
ThreadEnd work_on(std::atomic<float>& value, const CpuSet& cpus, unsigned additions, bool counts) {
    ThreadEnd end;
    end.refused = host::set_affinity(0, cpus);
    if (end.refused != 0) return end;
    if (!counts) {
        add_to(value, additions);
        return end;
    }
    const auto counter = MissCounter::open();
    add_to(value, additions);
    if (counter) end.reads = counter->read();
    return end;
}

} // namespace

Result<SharingRun> run_sharing(const PlacedThreads& placed, unsigned additions, bool counts) {
    Variables variables;
    std::array<ThreadEnd, sharing_threads> ends;
    SharingRun run;
    const double begin = monotonic_seconds();
    try {
        std::array<std::jthread, sharing_threads> threads;
        for (std::size_t i = 0; i < threads.size(); ++i)
            threads[i] = std::jthread([&, i] {
                ends[i] = work_on(variables.of(placed.placing, i), placed.cpus[i], additions, counts);
            });
    } catch (const std::system_error& error) {
        return fail("cannot make a thread", {}, error.code().value());
    }
    run.seconds = monotonic_seconds() - begin;
    for (std::size_t i = 0; i < ends.size(); ++i) {
        if (ends[i].refused != 0)
            return fail("a thread of this program may not run there", "CPU " + placed.cpus[i].to_list(),
                        ends[i].refused);
        if (!ends[i].reads) continue;
        if (!run.reads) run.reads.emplace();
        *run.reads += *ends[i].reads;
    }
    return run;
}

} // namespace affinityd::experiments
