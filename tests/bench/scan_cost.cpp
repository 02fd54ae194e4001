// SPDX-License-Identifier: Apache-2.0
// CPU time of a whole scan (pid, tid, name, mask, start time of each thread) against that of `ps -eLo
// pid,tid,comm,psr`, in turns, over whatever runs on the machine; and the longest slice at a budget of 5 ms.
// usage: scan_cost [ROUNDS]
#include "inventory/descriptors.hpp"
#include "inventory/process_scan.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char** environ;

namespace {

using namespace affinityd;

double cpu_ms(const rusage& usage) {
    const auto ms = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_usec) / 1e3;
    };
    return ms(usage.ru_utime) + ms(usage.ru_stime);
}

double own_cpu_ms() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return cpu_ms(usage);
}

/// CPU time of this thread: on a busy machine wall time would include other programs.
double now_ms() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

double ps_cpu_ms() {
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    char name[] = "ps";
    char what[] = "-eLo";
    char columns[] = "pid,tid,comm,psr";
    char* arguments[] = {name, what, columns, nullptr};
    pid_t pid = -1;
    const int code = ::posix_spawnp(&pid, name, &actions, nullptr, arguments, environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (code != 0) return -1;
    rusage usage{};
    int status = 0;
    ::wait4(pid, &status, 0, &usage);
    return status == 0 ? cpu_ms(usage) : -1;
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

} // namespace

int main(int argc, char** argv) {
    const int rounds = argc > 1 ? static_cast<int>(std::strtol(argv[1], nullptr, 10)) : 5;
    const auto root = host::Root::open();
    if (!root || rounds < 1) return 2;
    std::vector<double> ours;
    std::vector<double> theirs;
    std::vector<double> listing;
    double longest = 0;
    std::size_t processes = 0;
    std::size_t threads = 0;
    for (int round = 0; round < rounds; ++round) {
        processes = 0;
        threads = 0;
        double start = own_cpu_ms();
        double slice = now_ms();
        const auto out_of_time = [&] { return now_ms() - slice > 5; };
        const auto next_slice = [&] {
            longest = std::max(longest, now_ms() - slice);
            slice = now_ms();
        };
        auto stream = inventory::PidStream::open(*root);
        while (stream) {
            const auto pid = stream->next();
            if (!pid || !*pid) break;
            auto scan = inventory::ProcessScan::open(*root, **pid);
            if (!scan || !*scan) continue;
            while (!(*scan)->step(out_of_time))
                next_slice();
            const auto found = (*scan)->take_threads();
            ++processes;
            threads += found ? found->size() : 0;
            if (out_of_time()) next_slice();
        }
        ours.push_back(own_cpu_ms() - start);
        theirs.push_back(ps_cpu_ms());
        start = own_cpu_ms();
        const auto pids = inventory::list_pids(*root);
        listing.push_back(own_cpu_ms() - start);
        if (!pids || theirs.back() < 0) return 2;
    }
    const double ratio = median(ours) / median(theirs);
    std::printf("scan processes=%zu threads=%zu scan_cpu_ms=%.1f ps_cpu_ms=%.1f ratio=%.2f "
                "longest_slice_ms=%.2f list_pids_cpu_ms=%.1f\n",
                processes, threads, median(ours), median(theirs), ratio, longest, median(listing));
    return ratio <= 0.7 ? 0 : 1;
}
