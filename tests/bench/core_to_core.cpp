// SPDX-License-Identifier: Apache-2.0
// usage: core-to-core A B [cas|store] [SAMPLES [ROUND_TRIPS]]
// Nanoseconds for one way between two CPUs, measured as plainly as can be, with no code of affinityd: two
// threads, one cache line, one clock. Prints the median and the harmonic mean (of rates) over all samples.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>
#include <sched.h>

namespace {

alignas(256) std::atomic<int> ball{0}; // even: the first's turn; odd: the second's
alignas(256) int trips = 300;
int samples = 30;
bool swaps = true;

void stay_on(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) {
        std::fprintf(stderr, "cannot run on CPU %d\n", cpu);
        std::exit(1);
    }
}

double now_ns() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

void hit(int from, int to) {
    if (swaps) {
        int expected = from;
        while (!ball.compare_exchange_strong(expected, to))
            expected = from;
    } else {
        while (ball.load(std::memory_order_acquire) != from) {
        }
        ball.store(to, std::memory_order_release);
    }
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: core-to-core A B [cas|store] [SAMPLES [ROUND_TRIPS]]\n");
        return 2;
    }
    const int first = std::atoi(argv[1]), second = std::atoi(argv[2]);
    swaps = argc < 4 || std::string(argv[3]) == "cas";
    if (argc > 4) samples = std::atoi(argv[4]);
    if (argc > 5) trips = std::atoi(argv[5]);
    constexpr int warm_up = 100;
    std::thread other([&] {
        stay_on(second);
        for (long i = 0; i < static_cast<long>(warm_up + samples) * trips; ++i)
            hit(1, 0);
    });
    stay_on(first);
    std::vector<double> ns;
    for (int sample = 0; sample < warm_up + samples; ++sample) {
        const double begin = now_ns();
        for (int i = 0; i < trips; ++i)
            hit(0, 1);
        while (ball.load(std::memory_order_acquire) != 0) {
        }
        if (sample >= warm_up) ns.push_back((now_ns() - begin) / (2.0 * trips));
    }
    other.join();
    std::sort(ns.begin(), ns.end());
    double sum = 0;
    for (const double one : ns)
        sum += one;
    std::printf("median %.2f ns, harmonic mean %.2f ns, least %.2f, most %.2f\n", ns[ns.size() / 2],
                sum / static_cast<double>(ns.size()), ns.front(), ns.back());
    return 0;
}
