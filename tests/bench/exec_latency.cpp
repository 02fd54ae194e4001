// SPDX-License-Identifier: Apache-2.0
// How long a program runs unpinned after its exec, as the program itself sees it. The caller also starts what
// pins: it must pin "pin-probe" (with --thread, its threads called NAME) to CPU. The exit code is 1 if any
// was missed. usage: exec_latency PROBE CPU RUNS [--load N] [--thread NAME]
#include "starter.hpp"

#include <cstring>

namespace {

int time_threads(const std::string& probe, const char* name, const char* cpu, const char* runs) {
    const std::string command = "exec '" + probe + "' thread '" + name + "' " + cpu + " " + runs;
    FILE* output = ::popen(command.c_str(), "re");
    if (output == nullptr) return 2;
    std::vector<std::uint64_t> samples;
    std::size_t missed = 0;
    unsigned long long took = 0;
    while (std::fscanf(output, "%llu", &took) == 1) {
        if (took == 0)
            ++missed;
        else
            samples.push_back(took);
    }
    if (::pclose(output) != 0 || samples.size() + missed == 0) return 2;
    bench::print_latencies("thread_name_to_pinned", samples, missed);
    return missed == 0 ? 0 : 1;
}

int time_execs(const std::string& probe, int cpu, int runs) {
    bench::ProbeStarter starter(probe, cpu);
    std::vector<std::uint64_t> from_exec;
    std::vector<std::uint64_t> from_main;
    std::size_t missed = 0;
    for (int i = 0; i < runs; ++i) {
        const auto times = starter.run();
        if (!times) {
            ++missed;
            continue;
        }
        from_exec.push_back(times->from_exec);
        from_main.push_back(times->from_main);
    }
    bench::print_latencies("exec_to_pinned", from_exec, missed);
    bench::print_latencies("main_to_pinned", from_main, missed);
    return missed == 0 ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 4) {
        std::fprintf(stderr, "usage: exec_latency PROBE CPU RUNS [--load N] [--thread NAME]\n");
        return 2;
    }
    int load = 0;
    const char* thread = nullptr;
    for (int i = 4; i + 1 < argc; i += 2) {
        if (std::strcmp(argv[i], "--load") == 0)
            load = static_cast<int>(std::strtol(argv[i + 1], nullptr, 10));
        if (std::strcmp(argv[i], "--thread") == 0) thread = argv[i + 1];
    }
    const bench::Load busy(load);
    if (thread != nullptr) return time_threads(argv[1], thread, argv[2], argv[3]);
    return time_execs(argv[1], static_cast<int>(std::strtol(argv[2], nullptr, 10)),
                      static_cast<int>(std::strtol(argv[3], nullptr, 10)));
}
