// SPDX-License-Identifier: Apache-2.0
// A ttcp that shares no code with the tools: what `affinityctl measure models` measures of the model none,
// done once more, plainly. Namespaces, veth pairs with threaded NAPI, a process for each end. A line for each
// round: Gbit/s, or with "answer" requests per second and the median latency in microseconds. usage:
// plain_ttcp receive|transmit|answer CONNECTIONS SECONDS BYTES SOCKET_BUFFER ROUNDS
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

struct Options {
    std::string work;
    int connections;
    double seconds;
    size_t bytes;
    int socket_buffer;
    int rounds;
    bool is_printed = true;
};

/// The report of one end to the parent, in memory that both have.
struct Told {
    double begin, end;
    double bytes;
    double requests;
    float latencies[400000];
    int count;
};

[[noreturn]] void die(const char* what) {
    std::perror(what);
    std::exit(1);
}

double now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void run(const std::string& command) {
    if (std::system(command.c_str()) != 0) die(command.c_str());
}

void enter(int space) {
    if (setns(space, CLONE_NEWNET) != 0) die("setns");
}

void feature(const std::string& name, unsigned command, unsigned on) {
    ethtool_value value{command, on};
    ifreq request{};
    std::memcpy(request.ifr_name, name.c_str(), name.size());
    request.ifr_data = reinterpret_cast<char*>(&value);
    const int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
    if (ioctl(socket, SIOCETHTOOL, &request) != 0) die("ethtool");
    close(socket);
}

void set_up(int space, const std::string& name, const std::string& address) {
    enter(space);
    if (mount("sysfs", "/sys", "sysfs", 0, nullptr) != 0) die("mount");
    feature(name, ETHTOOL_SGRO, 1);
    feature(name, ETHTOOL_STSO, 0);
    run("ip address add " + address + "/24 dev " + name + " && ip link set " + name + " up");
    run("echo 1 >/sys/class/net/" + name + "/threaded");
    if (umount2("/sys", MNT_DETACH) != 0) die("umount");
}

/// Two namespaces; ours is the first.
void make_spaces(int spaces[2], int connections) {
    if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
        die("unshare");
    int ready[2];
    if (pipe(ready) != 0) die("pipe");
    for (int i = 1; i >= 0; --i) {
        if (unshare(CLONE_NEWNET) != 0) die("unshare (root is needed)");
        spaces[i] = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    }
    const std::string peer_space = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(spaces[1]);
    run("mkdir -p /run/netns && mount -t tmpfs none /run/netns && touch /run/netns/peer && mount --bind " +
        peer_space + " /run/netns/peer");
    for (int i = 0; i < connections; ++i) {
        const auto number = std::to_string(i);
        enter(spaces[0]);
        run("ip link add pa" + number + " type veth peer name pb" + number + " netns peer");
        set_up(spaces[0], "pa" + number, "198.19." + number + ".1");
        set_up(spaces[1], "pb" + number, "198.19." + number + ".2");
    }
}

int new_socket(const Options& options) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int one = 1;
    setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &options.socket_buffer, sizeof options.socket_buffer);
    setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &options.socket_buffer, sizeof options.socket_buffer);
    if (options.work == "answer") setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return socket;
}

sockaddr_in address_of(int path, bool here) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(5001);
    inet_pton(AF_INET, ("198.19." + std::to_string(path) + (here ? ".1" : ".2")).c_str(), &address.sin_addr);
    return address;
}

bool move_all(ssize_t (*call)(int, char*, size_t), int socket, char* data, size_t length) {
    for (size_t done = 0; done < length;) {
        const auto some = call(socket, data + done, length - done);
        if (some <= 0) return false;
        done += static_cast<size_t>(some);
    }
    return true;
}
ssize_t take(int socket, char* data, size_t length) { return recv(socket, data, length, 0); }
ssize_t give(int socket, char* data, size_t length) { return send(socket, data, length, MSG_NOSIGNAL); }

void sink(const Options& options, int socket, Told& told) {
    std::vector<char> buffer(options.bytes);
    const bool answers = options.work == "answer";
    while (answers && move_all(take, socket, buffer.data(), options.bytes)) {
        if (told.bytes == 0) told.begin = now();
        told.bytes += static_cast<double>(options.bytes);
        if (!move_all(give, socket, buffer.data(), options.bytes)) return;
    }
    for (ssize_t got = 0; !answers && (got = recv(socket, buffer.data(), buffer.size(), 0)) > 0;) {
        if (told.bytes == 0) told.begin = now();
        told.bytes += static_cast<double>(got);
    }
    told.end = now();
}

void source(const Options& options, int socket, Told& told) {
    std::vector<char> buffer(options.bytes, 'x');
    told.begin = now();
    const double until = told.begin + options.seconds;
    for (double asked = told.begin; asked < until;) {
        if (!move_all(give, socket, buffer.data(), options.bytes)) return;
        if (options.work == "answer") {
            if (!move_all(take, socket, buffer.data(), options.bytes)) return;
            ++told.requests;
            const double answered = now();
            if (told.count < 400000) told.latencies[told.count++] = static_cast<float>(answered - asked);
            asked = answered;
        } else {
            asked = now();
        }
    }
    told.end = now();
    shutdown(socket, SHUT_WR);
    char rest = 0;
    recv(socket, &rest, 1, 0); // until the sink has taken everything and closed
}

template <class Body>
void start(Body body) {
    const pid_t parent = getpid(), child = fork();
    if (child < 0) die("fork");
    if (child > 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent) body();
    _exit(0);
}

void one_round(const Options& options, const int spaces[2], Told* told) {
    const bool sink_here = options.work != "transmit";
    std::memset(told, 0, sizeof(Told) * 2 * static_cast<size_t>(options.connections));
    int gate[2], bell[2];
    if (pipe(gate) != 0 || pipe(bell) != 0) die("pipe");
    for (int i = 0; i < options.connections; ++i) {
        const auto address = address_of(i, sink_here);
        const int one = 1;
        enter(spaces[sink_here ? 0 : 1]);
        const int listener = new_socket(options);
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
            listen(listener, 1) != 0)
            die("listen");
        // As with ttcp, each end is a process that makes its own connection.
        start([&] {
            close(gate[1]);
            close(bell[1]);
            const int accepted = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
            if (accepted < 0) die("accept");
            sink(options, accepted, told[2 * i]);
        });
        start([&] {
            close(gate[1]);
            enter(spaces[sink_here ? 1 : 0]);
            const int socket = new_socket(options);
            if (connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
                die("connect");
            char byte = 0;
            const bool rung = write(bell[1], &byte, 1) == 1;
            close(bell[1]);
            if (rung && read(gate[0], &byte, 1) == 0) source(options, socket, told[2 * i + 1]);
        });
        close(listener);
    }
    close(bell[1]);
    char byte = 0;
    for (int i = 0; i < options.connections; ++i)
        if (read(bell[0], &byte, 1) != 1) die("an end did not connect");
    close(bell[0]);
    close(gate[1]);
    while (wait(nullptr) > 0 || errno == EINTR) {
    }
    close(gate[0]);
    double begin = 1e300, end = 0, bytes = 0, requests = 0;
    std::vector<float> latencies;
    for (int i = 0; i < options.connections; ++i) {
        begin = std::min(begin, told[2 * i].begin);
        end = std::max(end, told[2 * i].end);
        bytes += told[2 * i].bytes;
        const auto& asked = told[2 * i + 1];
        requests += asked.requests;
        latencies.insert(latencies.end(), asked.latencies, asked.latencies + asked.count);
    }
    if (!options.is_printed) return;
    std::sort(latencies.begin(), latencies.end());
    if (options.work == "answer")
        std::printf("%.6g %.6g\n", requests / (end - begin),
                    1e6 * static_cast<double>(latencies.at(latencies.size() / 2)));
    else
        std::printf("%.6g\n", bytes * 8e-9 / (end - begin));
    std::fflush(stdout);
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 7) {
        std::fprintf(
            stderr,
            "usage: plain_ttcp receive|transmit|answer CONNECTIONS SECONDS BYTES SOCKET_BUFFER ROUNDS\n");
        return 2;
    }
    const Options options{argv[1],
                          std::atoi(argv[2]),
                          std::atof(argv[3]),
                          static_cast<size_t>(std::atol(argv[4])),
                          std::atoi(argv[5]),
                          std::atoi(argv[6])};
    int spaces[2];
    make_spaces(spaces, options.connections);
    void* memory = mmap(nullptr, sizeof(Told) * 2 * static_cast<size_t>(options.connections),
                        PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) die("mmap");
    // Code, caches and threads settle in short rounds, which are not printed.
    Options short_one = options;
    short_one.seconds = std::min(0.25, options.seconds);
    short_one.is_printed = false;
    for (int round = 0; round < 16; ++round)
        one_round(short_one, spaces, static_cast<Told*>(memory));
    for (int round = 0; round < options.rounds; ++round)
        one_round(options, spaces, static_cast<Told*>(memory));
    return 0;
}
