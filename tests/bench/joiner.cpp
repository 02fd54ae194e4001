// SPDX-License-Identifier: Apache-2.0
// Joins the slot "bench" so many times a second, spread over four threads, and says what it was told.
// usage: joiner JOINS_A_SECOND SECONDS
#include "libaffinity/affinity.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Counts {
    std::atomic<unsigned long> asked, done, too_often, no_daemon, others;
};

void join(Counts& counts, Clock::duration pause, Clock::time_point end) {
    for (auto next = Clock::now(); next < end; next += pause) {
        std::this_thread::sleep_until(next);
        const int status = affinity_join("bench");
        ++counts.asked;
        ++(status == 1         ? counts.done
           : status == -EAGAIN ? counts.too_often
           : status == 0       ? counts.no_daemon
                               : counts.others);
    }
}

} // namespace

int main(int argc, char** argv) {
    constexpr int threads = 4;
    const long rate = argc > 2 ? std::strtol(argv[1], nullptr, 10) : 0;
    const long seconds = argc > 2 ? std::strtol(argv[2], nullptr, 10) : 0;
    if (rate < threads || seconds <= 0)
        return std::fprintf(stderr, "usage: joiner JOINS_A_SECOND SECONDS\n"), 2;
    Counts counts{};
    const auto begin = Clock::now();
    const auto pause = std::chrono::nanoseconds(std::chrono::seconds(threads)) / rate;
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i)
        all.emplace_back(join, std::ref(counts), pause, begin + std::chrono::seconds(seconds));
    for (auto& one : all)
        one.join();
    const double took = std::chrono::duration<double>(Clock::now() - begin).count();
    std::printf("joins a_second=%.0f asked=%lu done=%lu too_often=%lu no_daemon=%lu others=%lu\n",
                static_cast<double>(counts.asked) / took, counts.asked.load(), counts.done.load(),
                counts.too_often.load(), counts.no_daemon.load(), counts.others.load());
    return 0;
}
