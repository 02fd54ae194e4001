// SPDX-License-Identifier: Apache-2.0
// A user who means ill: floods the kernel's process events for some seconds, as the user nobody where it
// may. The flood bounds itself, in time and in processes. usage: flood KIND[,KIND...] SECONDS [THREADS]
//   rename   renames its main thread at full speed; THREADS others sleep
//   threads  makes threads that end at once
//   fork     makes children that end at once
//   exec     starts programs that end at once
//   label    makes children that take a name and end
//   masks    resets its own mask at full speed
//   users    changes its real user back and forth, as far as it may
//   sockets  opens sockets that listen, and closes them
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <vector>

#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace {

using Clock = std::chrono::steady_clock;
constexpr uid_t nobody = 65534;
constexpr int most_threads = 4000;
constexpr int longest = 660; // seconds

bool give_up_root() {
    if (::geteuid() != 0) return true;
    return ::setgroups(0, nullptr) == 0 && ::setgid(nobody) == 0 && ::setuid(nobody) == 0;
}

void rename_once(unsigned long turn) {
    char name[16];
    std::snprintf(name, sizeof name, "flood-%lu", turn % 1000);
    ::prctl(PR_SET_NAME, name);
}

void one_child(bool takes_name) {
    const int pid = ::fork();
    if (pid == 0) {
        if (takes_name) ::prctl(PR_SET_NAME, "flood-child");
        ::_exit(0);
    }
    if (pid > 0) ::waitpid(pid, nullptr, 0);
}

void one_program(char* self) {
    char* arguments[] = {self, nullptr};
    pid_t child = -1;
    if (::posix_spawn(&child, self, nullptr, nullptr, arguments, environ) == 0) ::waitpid(child, nullptr, 0);
}

void one_mask() {
    cpu_set_t all;
    CPU_ZERO(&all);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        CPU_SET(cpu, &all);
    ::sched_setaffinity(0, sizeof all, &all);
}

void one_socket() {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (socket < 0) return;
    ::listen(socket, 1); // at a port that the kernel chooses
    ::close(socket);
}

/// False: the user may have no more threads.
bool try_thread(const auto& start) {
    try {
        start();
    } catch (const std::system_error&) {
        return false;
    }
    return true;
}

void flood(const std::string& kind, char* self, Clock::time_point end, int threads) {
    std::atomic<bool> over = false;
    std::vector<std::thread> others;
    for (int i = 0; i < threads && kind == "rename"; ++i)
        if (!try_thread([&] { others.emplace_back([&] { over.wait(false); }); })) break;
    unsigned long turns = 0;
    for (; Clock::now() < end; ++turns) {
        if (kind == "rename")
            rename_once(turns);
        else if (kind == "threads")
            try_thread([] { std::thread([] {}).join(); });
        else if (kind == "fork" || kind == "label")
            one_child(kind == "label");
        else if (kind == "exec")
            one_program(self);
        else if (kind == "masks")
            one_mask();
        else if (kind == "users")
            std::ignore = ::setresuid(nobody, nobody, nobody);
        else if (kind == "sockets")
            one_socket();
    }
    over = true;
    over.notify_all();
    for (auto& thread : others)
        thread.join();
    std::printf("%s %lu\n", kind.c_str(), turns);
    std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv) {
    if (argc == 1) return 0; // what exec starts
    if (argc < 3 || !give_up_root()) {
        std::fprintf(stderr, "usage: flood KIND[,KIND...] SECONDS [THREADS]\n");
        return 2;
    }
    const auto end =
        Clock::now() +
        std::chrono::seconds(std::min(static_cast<int>(std::strtol(argv[2], nullptr, 10)), longest));
    const int threads =
        argc > 3 ? std::min(static_cast<int>(std::strtol(argv[3], nullptr, 10)), most_threads) : 0;
    ::setpriority(PRIO_PROCESS, 0, 5);
    std::istringstream kinds(argv[1]);
    std::vector<pid_t> children;
    for (std::string kind; std::getline(kinds, kind, ',');) {
        const int pid = ::fork();
        if (pid == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            ::prctl(PR_SET_NAME, "flood");
            flood(kind, argv[0], end, threads);
            return 0;
        }
        children.push_back(pid);
    }
    for (const int pid : children)
        ::waitpid(pid, nullptr, 0);
}
