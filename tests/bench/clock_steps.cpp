// SPDX-License-Identifier: Apache-2.0
// usage: clock-steps LIMIT_US: looks at its own line in /proc again and again, until standard input ends, and
// works for a quarter of the time, so that others have the CPUs, too. Prints in how much CPU time how many of
// the looks took more than LIMIT_US of it, and the longest: what the machine (its hypervisor, its interrupts,
// locks of its kernel) bills to whoever runs, for work that cannot be cut into smaller parts.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <fcntl.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

namespace {

constexpr long work_us = 5'000;
constexpr int rest_ms = 15;

long cpu_us() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1'000'000 + now.tv_nsec / 1'000;
}

void look() {
    char line[1024];
    const int file = ::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    if (file < 0 || ::read(file, line, sizeof line) <= 0) std::abort();
    ::close(file);
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    const long limit = std::strtol(argv[1], nullptr, 10);
    long steps = 0, longest = 0;
    pollfd input{.fd = 0, .events = POLLIN, .revents = 0};
    while (::poll(&input, 1, rest_ms) == 0) {
        const long begin = cpu_us();
        for (long before = begin; before - begin < work_us;) {
            look();
            const long now = cpu_us();
            longest = std::max(longest, now - before);
            steps += now - before > limit ? 1 : 0;
            before = now;
        }
    }
    std::printf("clock_steps steps=%ld cpu_ms=%ld longest_us=%ld\n", steps, cpu_us() / 1'000, longest);
}
