// SPDX-License-Identifier: Apache-2.0
// usage: lost-cache KIB QUANTUM_MS QUANTA POLLUTER_KIB CPU [OTHER_CPU]
// The experiment of "Performance Implications of Cache Affinity on Multicore Processors", without any code of
// affinityd: a thread walks through KIB of memory; after each quantum a second thread on the same CPU (the
// base vector) reads POLLUTER_KIB, and the first goes on. With OTHER_CPU the first one changes between both
// CPUs at each interruption, and the second reads its memory on the CPU that the first will go to, before
// that. A quantum is as many steps as take QUANTUM_MS undisturbed: what is lost at its beginning is the same
// part of it, however large. Prints ns of CPU time per step in each quantum; the first two are left out.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <semaphore>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

namespace {

struct alignas(64) Line {
    std::uint64_t next;
};

Line* lines_of(std::uint64_t kib, std::uint64_t& count) {
    count = kib * 1024 / sizeof(Line);
    const auto bytes = (count * sizeof(Line) + (2U << 20U) - 1) / (2U << 20U) * (2U << 20U);
    auto* lines = static_cast<Line*>(std::aligned_alloc(2U << 20U, bytes));
    if (lines == nullptr) std::abort();
    madvise(lines, bytes, MADV_HUGEPAGE);
    std::vector<std::uint64_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937_64(7));
    for (std::uint64_t i = 0; i < count; ++i)
        lines[order[i]].next = order[(i + 1) % count];
    return lines;
}

void stay_on(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) std::abort();
}

double cpu_seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

void walk(const Line* lines, std::uint64_t steps, std::uint64_t& at) {
    for (; steps > 0; --steps)
        at = lines[at].next;
}

/// So many steps take `seconds` where the caches are kept.
std::uint64_t steps_in(double seconds, const Line* lines, std::uint64_t count, std::uint64_t& at) {
    const std::uint64_t tried = std::max<std::uint64_t>(2 * count, 200'000);
    walk(lines, tried, at);
    const double begin = cpu_seconds();
    walk(lines, tried, at);
    return static_cast<std::uint64_t>(seconds / (cpu_seconds() - begin) * static_cast<double>(tried)) + 1;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 6) return 2;
    const int quanta = std::atoi(argv[3]);
    const int cpus[] = {std::atoi(argv[5]), std::atoi(argv[argc > 6 ? 6 : 5])};
    std::binary_semaphore interrupt(0), go_on(0);
    std::thread polluter([&] {
        std::uint64_t count = 0;
        const Line* lines = std::atoi(argv[4]) > 0
                                ? lines_of(static_cast<std::uint64_t>(std::atoll(argv[4])), count)
                                : nullptr;
        for (int i = 1; i <= quanta; ++i) {
            interrupt.acquire();
            stay_on(cpus[i % 2]);
            std::uint64_t sum = 0;
            for (std::uint64_t line = 0; line < count; ++line)
                sum += lines[line].next;
            volatile std::uint64_t kept = sum;
            static_cast<void>(kept);
            go_on.release();
        }
    });
    std::uint64_t count = 0, at = 0;
    stay_on(cpus[0]);
    const Line* lines = lines_of(static_cast<std::uint64_t>(std::atoll(argv[1])), count);
    const auto steps = steps_in(std::atof(argv[2]) / 1e3, lines, count, at);
    for (int i = 0; i < quanta; ++i) {
        const double begin = cpu_seconds();
        walk(lines, steps, at);
        if (i >= 2) std::printf("%.5f\n", (cpu_seconds() - begin) * 1e9 / static_cast<double>(steps));
        interrupt.release();
        go_on.acquire();
        stay_on(cpus[(i + 1) % 2]);
    }
    polluter.join();
    return at == ~std::uint64_t{0} ? 1 : 0; // where it ended is wanted
}
