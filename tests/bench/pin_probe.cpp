// SPDX-License-Identifier: Apache-2.0
// A program that waits to be pinned and times that from inside. The process has the name of its file,
// "pin-probe".
//   pin-probe CPU                 spins on its own mask after exec, reports through the shared page, ends
//   pin-probe thread NAME CPU N   N threads, one after the other, name themselves and spin; prints
//   nanoseconds,
//                                 one line for each
#include "shared_page.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <pthread.h>
#include <sys/prctl.h>

namespace {

struct Attempt {
    const char* name;
    int cpu;
    std::uint64_t took = 0; ///< 0: it gave up
};

void* name_and_spin(void* argument) {
    auto* attempt = static_cast<Attempt*>(argument);
    // A daemon that places new threads needs a moment for this one: only the change of name is timed.
    const timespec pause{0, 2'000'000};
    ::nanosleep(&pause, nullptr);
    const auto start = bench::now_ns();
    ::prctl(PR_SET_NAME, attempt->name);
    if (bench::spin_until_pinned(attempt->cpu)) attempt->took = bench::now_ns() - start;
    return nullptr;
}

int time_threads(const char* name, int cpu, int count) {
    for (int i = 0; i < count; ++i) {
        Attempt attempt{name, cpu};
        pthread_t thread{};
        if (::pthread_create(&thread, nullptr, name_and_spin, &attempt) != 0) return 1;
        ::pthread_join(thread, nullptr);
        std::printf("%llu\n", static_cast<unsigned long long>(attempt.took));
    }
    return 0;
}

} // namespace

int main(int argc, char** argv) {
    if (argc == 5 && std::strcmp(argv[1], "thread") == 0)
        return time_threads(argv[2], static_cast<int>(std::strtol(argv[3], nullptr, 10)),
                            static_cast<int>(std::strtol(argv[4], nullptr, 10)));
    const auto entered = bench::now_ns();
    auto* page = bench::map_shared(bench::shared_descriptor);
    if (argc != 2 || page == nullptr) return 2;
    page->entered = entered;
    page->pinned =
        bench::spin_until_pinned(static_cast<int>(std::strtol(argv[1], nullptr, 10))) ? bench::now_ns() : 0;
    return 0;
}
