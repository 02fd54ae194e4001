// SPDX-License-Identifier: Apache-2.0
// usage: shared-lines RUNS [CPU_A CPU_B [one-line]]
// The two programs of "Pin threads at the source code level" (Arm Learning Paths), without Google Benchmark
// and without any code of affinityd: four threads, two on each of two atomic floats. Without CPUs the
// scheduler decides; else threads of a run on CPU_A, those of b on CPU_B. one-line: a and b lie in one cache
// line. Prints ms per run, one per line.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sched.h>

namespace {

struct AlignedAtomic {
    alignas(64) std::atomic<float> val = 0;
};

struct Together {
    alignas(128) std::atomic<float> a = 0;
    std::atomic<float> b = 0;
};

void task(std::atomic<float>& value) {
    for (int i = 0; i < (1 << 18); i++)
        value = value + 1.0F;
}

void one_run(std::atomic<float>& a, std::atomic<float>& b, const std::vector<int>& cpus) {
    std::vector<std::thread> threads;
    threads.reserve(4);
    for (int i = 0; i < 4; i++) {
        threads.emplace_back(task, std::ref(i % 2 == 0 ? a : b));
        if (cpus.empty()) continue;
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(cpus[i % 2], &set);
        if (pthread_setaffinity_np(threads[i].native_handle(), sizeof set, &set) != 0) std::abort();
    }
    for (auto& thread : threads)
        thread.join();
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    std::vector<int> cpus;
    if (argc > 3) cpus = {std::atoi(argv[2]), std::atoi(argv[3])};
    const bool is_one_line = argc > 4 && std::string(argv[4]) == "one-line";
    for (int run = std::atoi(argv[1]); run > 0; --run) {
        AlignedAtomic a, gap, b;
        Together both;
        const auto begin = std::chrono::steady_clock::now();
        if (is_one_line)
            one_run(both.a, both.b, cpus);
        else
            one_run(a.val, b.val, cpus);
        gap.val = 0;
        const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
        std::printf("%.4f\n", time.count());
    }
}
