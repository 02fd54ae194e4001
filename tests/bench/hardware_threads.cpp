// SPDX-License-Identifier: Apache-2.0
// usage: hardware-threads accum|sin NUMBERS RUNS CPU [CPU]
// The benchmark of "C++11 threads, affinity and hyperthreading" (Bendersky), without any code of affinityd:
// the workload on each CPU at once, each with floats of its own. Prints ms of CPU time of each thread, a line
// for each run: what others take on a busy machine is in the wall clock only.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <time.h>

namespace {

float workload_accum(const std::vector<float>& data) {
    float rt = 0;
    for (size_t i = 0; i < data.size(); ++i)
        rt += data[i];
    return rt;
}

float workload_sin(const std::vector<float>& data) {
    float rt = 0;
    for (size_t i = 0; i < data.size(); ++i)
        rt += std::sin(data[i]);
    return rt;
}

double used_ms() {
    timespec time{}; // getrusage(2) would know it as of the last tick
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 5) return 2;
    const bool is_sin = std::string(argv[1]) == "sin";
    const auto numbers = static_cast<size_t>(std::atoll(argv[2]));
    const int runs = std::atoi(argv[3]), count = argc - 4;
    std::vector<std::vector<float>> data(static_cast<size_t>(count));
    for (int i = 0; i < count; ++i) {
        std::mt19937 engine(static_cast<unsigned>(i));
        std::uniform_real_distribution<float> any(0, 100);
        for (size_t j = 0; j < numbers; ++j)
            data[static_cast<size_t>(i)].push_back(any(engine));
    }
    std::vector<float> results(data.size());
    for (int run = 0; run < runs; ++run) {
        std::vector<double> ms(data.size());
        pthread_barrier_t start;
        pthread_barrier_init(&start, nullptr, static_cast<unsigned>(count));
        std::vector<std::thread> threads;
        for (size_t i = 0; i < data.size(); ++i)
            threads.emplace_back([&, i] {
                cpu_set_t set;
                CPU_ZERO(&set);
                CPU_SET(std::atoi(argv[4 + i]), &set);
                if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) std::abort();
                pthread_barrier_wait(&start);
                const double begin = used_ms();
                results[i] = is_sin ? workload_sin(data[i]) : workload_accum(data[i]);
                ms[i] = used_ms() - begin;
            });
        for (auto& thread : threads)
            thread.join();
        pthread_barrier_destroy(&start);
        for (const double one : ms)
            std::printf("%.4f ", one);
        std::printf("\n");
    }
    return results[0] > 1e30F ? 1 : 0; // the sums are wanted
}
