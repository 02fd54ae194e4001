// SPDX-License-Identifier: Apache-2.0
// The yardstick: listens on the process connector and pins by name, without filter, policy, or undo.
// usage: bare_listener NAME CPU
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

bool has_name(int pid, const char* wanted) {
    char path[32];
    char name[32] = {};
    std::snprintf(path, sizeof path, "/proc/%d/comm", pid);
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const auto length = ::read(fd, name, sizeof name - 1);
    ::close(fd);
    if (length > 0) name[length - 1] = '\0';
    return std::strcmp(name, wanted) == 0;
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(static_cast<std::size_t>(static_cast<int>(std::strtol(argv[2], nullptr, 10))), &cpus);
    const int fd = ::socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_CONNECTOR);
    sockaddr_nl address{};
    address.nl_family = AF_NETLINK;
    address.nl_groups = CN_IDX_PROC;
    const int size = 16 << 20;
    ::setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    if (::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return 1;
    alignas(8) char buffer[4096] = {};
    auto* header = reinterpret_cast<nlmsghdr*>(buffer);
    auto* message = reinterpret_cast<cn_msg*>(buffer + NLMSG_HDRLEN);
    header->nlmsg_len = NLMSG_HDRLEN + sizeof(cn_msg) + 4;
    header->nlmsg_type = NLMSG_DONE;
    message->id = {CN_IDX_PROC, CN_VAL_PROC};
    message->len = 4;
    const unsigned listen = PROC_CN_MCAST_LISTEN;
    std::memcpy(message->data, &listen, sizeof listen);
    if (::send(fd, buffer, header->nlmsg_len, 0) < 0) return 1;
    std::puts("ready");
    std::fflush(stdout);
    while (true) {
        if (::recv(fd, buffer, sizeof buffer, 0) <= 0) continue;
        proc_event event;
        std::memcpy(&event, message->data, sizeof event);
        if (event.what == proc_event::PROC_EVENT_EXEC) {
            const int pid = event.event_data.exec.process_tgid;
            if (has_name(pid, argv[1])) ::sched_setaffinity(pid, sizeof cpus, &cpus);
        } else if (event.what == proc_event::PROC_EVENT_COMM &&
                   std::strcmp(event.event_data.comm.comm, argv[1]) == 0) {
            ::sched_setaffinity(event.event_data.comm.process_pid, sizeof cpus, &cpus);
        }
    }
}
