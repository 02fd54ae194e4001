// SPDX-License-Identifier: Apache-2.0
// Starts a program that no policy matches COUNT times at full speed. Prints what that cost the listening
// process, and what listening cost the storm. With --probe, it starts a program in the middle that a policy
// matches and that times its own pinning.
// usage: storm CHILD COUNT [--listener PID] [--probe FILE CPU]
#include "starter.hpp"

#include <cstring>

#include <spawn.h>

extern char** environ;

namespace {

/// CPU time of a process in milliseconds, without its children: from schedstat where the kernel has it, else
/// from the clock ticks of stat.
double cpu_time_ms(int pid) {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/%d/schedstat", pid);
    unsigned long long ns = 0;
    if (FILE* file = std::fopen(path, "re")) {
        const bool read = std::fscanf(file, "%llu", &ns) == 1;
        std::fclose(file);
        if (read && ns > 0) return static_cast<double>(ns) / 1e6;
    }
    std::snprintf(path, sizeof path, "/proc/%d/stat", pid);
    char line[1024] = {};
    FILE* file = std::fopen(path, "re");
    if (file == nullptr || std::fgets(line, sizeof line, file) == nullptr) return -1;
    std::fclose(file);
    unsigned long long user = 0;
    unsigned long long system = 0;
    const char* rest = std::strrchr(line, ')');
    if (rest == nullptr ||
        std::sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &system) != 2)
        return -1;
    return static_cast<double>(user + system) * 1000.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: storm CHILD COUNT [--listener PID] [--probe FILE CPU]\n");
        return 2;
    }
    const int count = static_cast<int>(std::strtol(argv[2], nullptr, 10));
    int listener = 0;
    std::optional<bench::ProbeStarter> probe;
    for (int i = 3; i < argc; ++i) {
        if (std::strcmp(argv[i], "--listener") == 0 && i + 1 < argc)
            listener = static_cast<int>(std::strtol(argv[i + 1], nullptr, 10));
        if (std::strcmp(argv[i], "--probe") == 0 && i + 2 < argc)
            probe.emplace(argv[i + 1], static_cast<int>(std::strtol(argv[i + 2], nullptr, 10)));
    }
    char* arguments[] = {argv[1], nullptr};
    const double cpu_before = listener > 0 ? cpu_time_ms(listener) : 0;
    const auto start = bench::now_ns();
    for (int i = 0; i < count; ++i) {
        pid_t child = -1;
        if (::posix_spawn(&child, argv[1], nullptr, nullptr, arguments, environ) != 0) return 1;
        if (probe && i == count / 2) probe->start();
        ::waitpid(child, nullptr, 0);
    }
    const auto took = bench::now_ns() - start;
    std::printf("storm count=%d us_per_start=%.1f", count, static_cast<double>(took) / 1000.0 / count);
    if (listener > 0) {
        // Queued events are part of the cost: wait until the listener rests.
        double last = cpu_time_ms(listener);
        for (int i = 0; i < 100; ++i) {
            const timespec pause{0, 100'000'000};
            ::nanosleep(&pause, nullptr);
            const double now = cpu_time_ms(listener);
            if (now == last) break;
            last = now;
        }
        std::printf(" listener_cpu_ms_per_1000=%.2f", (last - cpu_before) * 1000.0 / count);
    }
    int status = 0;
    if (probe) {
        const auto times = probe->finish();
        std::printf(" probe_us=%.1f", times ? static_cast<double>(times->from_exec) / 1000.0 : -1.0);
        status = times ? 0 : 1;
    }
    std::printf("\n");
    return status;
}
