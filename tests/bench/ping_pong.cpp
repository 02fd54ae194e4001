// SPDX-License-Identifier: Apache-2.0
// Both ends of TCP connections in one thread on one CPU, so that nothing waits: reads "kept SECONDS" (round
// trips of one byte over one connection) or "new SECONDS" (whole connections with one round trip each), and
// prints the nanoseconds of CPU time that one took, which other load disturbs least. There are two listeners;
// "option 0" sets SO_INCOMING_CPU of the first to CPU 0 and of the other to CPU 1, "option -1" to none, and
// prints 0.
//
//     ping-pong ADDRESS PORT
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string>

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

const int one = 1;
const linger reset = {1, 0};

int fail(const char* what) {
    perror(what);
    std::exit(1);
}

/// Nanoseconds.
double cpu_time() {
    timespec time{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

struct Ends {
    int client = -1, server = -1;
};

Ends connect_to(const sockaddr_in& to, std::array<pollfd, 2>& listeners) {
    Ends ends{::socket(AF_INET, SOCK_STREAM, 0)};
    if (::connect(ends.client, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) fail("connect");
    if (::poll(listeners.data(), listeners.size(), 10000) < 1) fail("poll");
    ends.server = ::accept(listeners[listeners[0].revents != 0 ? 0 : 1].fd, nullptr, nullptr);
    for (const int fd : {ends.client, ends.server})
        ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return ends;
}

void go_round(const Ends& ends) {
    char c = 'x';
    if (::write(ends.client, &c, 1) != 1 || ::read(ends.server, &c, 1) != 1 ||
        ::write(ends.server, &c, 1) != 1 || ::read(ends.client, &c, 1) != 1)
        fail("round trip");
}

void close_both(const Ends& ends) {
    ::setsockopt(ends.client, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    ::close(ends.client);
    ::close(ends.server);
}

} // namespace

int main(int count, char** words) {
    if (count != 3) return 2;
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::atoi(words[2])));
    ::inet_pton(AF_INET, words[1], &to.sin_addr);
    std::array<pollfd, 2> listeners{};
    for (auto& listener : listeners) {
        listener = {::socket(AF_INET, SOCK_STREAM, 0), POLLIN, 0};
        ::setsockopt(listener.fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof one);
        if (::bind(listener.fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 ||
            ::listen(listener.fd, 16) != 0)
            fail("listen");
    }
    std::string what;
    double seconds = 0;
    while (std::cin >> what >> seconds) {
        if (what == "option") {
            for (std::size_t i = 0; i < listeners.size(); ++i) {
                const int cpu = seconds < 0 ? -1 : static_cast<int>(i);
                if (::setsockopt(listeners[i].fd, SOL_SOCKET, SO_INCOMING_CPU, &cpu, sizeof cpu) != 0)
                    fail("SO_INCOMING_CPU");
            }
            std::cout << 0 << std::endl;
            continue;
        }
        using Clock = std::chrono::steady_clock;
        const auto end = Clock::now() + std::chrono::duration<double>(seconds);
        const double before = cpu_time();
        long rounds = 0;
        const Ends kept = connect_to(to, listeners);
        while (Clock::now() < end)
            for (int i = 0; i < 100; ++i, ++rounds)
                if (what == "kept") {
                    go_round(kept);
                } else {
                    const Ends fresh = connect_to(to, listeners);
                    go_round(fresh);
                    close_both(fresh);
                }
        close_both(kept);
        std::cout << (cpu_time() - before) / static_cast<double>(rounds) << std::endl;
    }
}
