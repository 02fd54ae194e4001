// SPDX-License-Identifier: Apache-2.0
// Programs and threads that start, end, and rename themselves at random until standard input ends; FIRM of
// them stay for the whole time. Prints their PIDs, then "ready". usage: churn FIRM NAME
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

void* sleep_for_ever(void*) {
    while (true)
        ::pause();
}

[[noreturn]] void live(const char* name, int threads, bool mortal, int parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(0);
    ::prctl(PR_SET_NAME, name);
    std::mt19937 random(static_cast<unsigned>(::getpid()));
    for (int i = 0; i < threads; ++i) {
        pthread_t thread{};
        if (::pthread_create(&thread, nullptr, sleep_for_ever, nullptr) == 0)
            ::pthread_setname_np(thread, (std::string("worker-") + std::to_string(i)).c_str());
    }
    while (true) {
        ::usleep(1000 + random() % 20000);
        if (!mortal) {
            // Out of the policy and back in: each time the daemon must restore the original mask.
            ::prctl(PR_SET_NAME, random() % 4 == 0 ? "churn-other" : name);
            continue;
        }
        if (random() % 8 == 0) ::_exit(0);
    }
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const int firm = static_cast<int>(std::strtol(argv[1], nullptr, 10));
    const int parent = ::getpid();
    std::mt19937 random(7);
    const auto start = [&](bool mortal) {
        const int threads = static_cast<int>(random() % 4);
        const int pid = ::fork();
        if (pid == 0) live(argv[2], threads, mortal, parent);
        return pid;
    };
    for (int i = 0; i < firm; ++i)
        std::printf("%d\n", start(false));
    std::puts("ready");
    std::fflush(stdout);
    pollfd input{0, POLLIN, 0};
    int alive = 0;
    while (::poll(&input, 1, 3) == 0) {
        while (alive > 0 && ::waitpid(-1, nullptr, WNOHANG) > 0)
            --alive;
        if (alive < 30 && start(true) > 0) ++alive;
    }
    // The firm ones die with their parent.
    return 0;
}
