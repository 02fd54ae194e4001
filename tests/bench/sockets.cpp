// SPDX-License-Identifier: Apache-2.0
// COUNT connected TCP sockets over loopback, in as few processes as the limit of open files allows, for as
// long as standard input is open. Prints "ready". Start it in a network namespace of its own. usage: sockets
// COUNT
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

constexpr int pairs_each = 20'000; ///< of one listener: fewer than there are ports for clients

int complain(const char* what) {
    std::perror(what);
    return 1;
}

/// Connects `pairs` sockets to 127.0.0.HOST.
int fill(int host, int pairs) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(7000);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK + static_cast<unsigned>(host));
    const auto* to = reinterpret_cast<const sockaddr*>(&address);
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || ::bind(listener, to, sizeof address) != 0 || ::listen(listener, 128) != 0)
        return complain("listen");
    for (int i = 0; i < pairs; ++i) {
        const int client = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (client < 0 || ::connect(client, to, sizeof address) != 0) return complain("connect");
        if (::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC) < 0) return complain("accept");
    }
    return 0;
}

[[noreturn]] void live(int host, int pairs, int told, int parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(0);
    const char outcome = fill(host, pairs) == 0 ? '0' : '1';
    if (::write(told, &outcome, 1) != 1) ::_exit(1);
    while (true)
        ::pause();
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
    const int each = static_cast<int>(std::min<rlim_t>(pairs_each, (limit.rlim_max - 100) / 2));
    int ready[2];
    if (::pipe(ready) != 0) return complain("pipe");
    const int parent = ::getpid();
    int processes = 0;
    for (int pairs = static_cast<int>(std::strtol(argv[1], nullptr, 10)) / 2; pairs > 0; pairs -= each) {
        if (const int pid = ::fork(); pid == 0) live(processes, std::min(pairs, each), ready[1], parent);
        ++processes;
    }
    char byte = 0;
    for (int i = 0; i < processes; ++i)
        if (::read(ready[0], &byte, 1) != 1 || byte != '0') return 1;
    std::puts("ready");
    std::fflush(stdout);
    while (::read(0, &byte, 1) > 0) {
    }
    return 0; // which ends the children
}
