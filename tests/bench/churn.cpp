// SPDX-License-Identifier: Apache-2.0
// Programs and threads that start, end, and rename themselves at random until standard input ends; FIRM of
// them stay for the whole time. Prints their PIDs, then "ready". With ORPHANS, also children that outlive
// their parents by up to so many seconds, under another name. usage: churn FIRM NAME [ORPHANS]
#include <cstdio>
#include <cstdlib>
#include <random>
#include <set>
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

struct Life {
    const char* name;
    int parent;
    int orphans; ///< seconds that a child outlives its parent at most; 0: there are none
};

/// A child that keeps the mask which its parent has now, until its time is over or standard input ends.
void leave_orphan(const Life& life, unsigned chance) {
    if (life.orphans == 0 || ::fork() != 0) return;
    ::prctl(PR_SET_NAME, "churn-orphan");
    pollfd input{0, POLLIN, 0};
    ::poll(&input, 1, 100 + static_cast<int>(chance % static_cast<unsigned>(life.orphans * 1000)));
    ::_exit(0);
}

[[noreturn]] void live(const Life& life, int threads, bool mortal) {
    const auto& [name, parent, orphans] = life;
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
        while (::waitpid(-1, nullptr, WNOHANG) > 0)
            ;
        if (random() % 64 == 0) leave_orphan(life, random());
        if (!mortal) {
            // Out of the policy and back in: each time the daemon must restore the original mask.
            ::prctl(PR_SET_NAME, random() % 4 == 0 ? "churn-other" : name);
            continue;
        }
        if (random() % 8 != 0) continue;
        leave_orphan(life, random());
        ::_exit(0);
    }
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const Life life{argv[2], ::getpid(), argc > 3 ? static_cast<int>(std::strtol(argv[3], nullptr, 10)) : 0};
    const int firm = static_cast<int>(std::strtol(argv[1], nullptr, 10));
    std::mt19937 random(7);
    const auto start = [&](bool mortal) {
        const int threads = static_cast<int>(random() % 4);
        const int pid = ::fork();
        if (pid == 0) live(life, threads, mortal);
        return pid;
    };
    for (int i = 0; i < firm; ++i)
        std::printf("%d\n", start(false));
    std::puts("ready");
    std::fflush(stdout);
    pollfd input{0, POLLIN, 0};
    std::set<int> mortals;
    while (::poll(&input, 1, 3) == 0) {
        for (int pid; (pid = ::waitpid(-1, nullptr, WNOHANG)) > 0;)
            mortals.erase(pid);
        if (mortals.size() < 30) mortals.insert(start(true));
    }
    // The firm ones die with their parent.
    return 0;
}
