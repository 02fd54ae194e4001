// SPDX-License-Identifier: Apache-2.0
// PROCESSES sleeping processes with THREADS threads in all (every second one has more than one), for as long
// as standard input is open. Prints "ready". All end with this program, however it ends.
// usage: crowd PROCESSES THREADS [NAME]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

void* sleep_for_ever(void*) {
    while (true)
        ::pause();
}

[[noreturn]] void live(int threads, int parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(0);
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, static_cast<std::size_t>(PTHREAD_STACK_MIN));
    for (int i = 1; i < threads; ++i) {
        pthread_t thread{};
        if (::pthread_create(&thread, &attributes, sleep_for_ever, nullptr) != 0) ::_exit(1);
    }
    sleep_for_ever(nullptr);
    ::_exit(0);
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const int processes = static_cast<int>(std::strtol(argv[1], nullptr, 10));
    const int threads = static_cast<int>(std::strtol(argv[2], nullptr, 10));
    if (argc > 3) ::prctl(PR_SET_NAME, argv[3]);
    const int parent = ::getpid();
    std::vector<int> children;
    int extra = threads - processes;
    const int share = processes > 1 ? extra / (processes / 2) : extra;
    for (int i = 0; i < processes; ++i) {
        const int more = i % 2 == 1 ? std::min(extra, share) : 0;
        extra -= more;
        const int pid = ::fork();
        if (pid == 0) live(1 + more, parent);
        if (pid < 0) {
            std::fprintf(stderr, "only %d processes fit\n", i);
            break;
        }
        children.push_back(pid);
    }
    ::usleep(500000); // until the last ones have made their threads
    std::puts("ready");
    std::fflush(stdout);
    char byte = 0;
    while (::read(0, &byte, 1) > 0) {
    }
    for (const int pid : children)
        ::kill(pid, SIGKILL);
    while (::wait(nullptr) > 0) {
    }
    return 0;
}
