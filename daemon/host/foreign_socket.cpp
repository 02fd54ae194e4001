// SPDX-License-Identifier: Apache-2.0
#include "host/foreign_socket.hpp"

#include "host/avoided.hpp"
#include "host/close_aside.hpp"
#include "host/interruptions.hpp"
#include "host/patient_call.hpp"
#include "host/socket_link.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace affinityd::host {

namespace {

template <class Value>
std::optional<Value> option(int fd, int name, int level = SOL_SOCKET) {
    Value value{};
    socklen_t size = sizeof value;
    if (::getsockopt(fd, level, name, &value, &size) != 0 || size != sizeof value) return std::nullopt;
    return value;
}

constexpr int most_waiting = 16;
constexpr std::chrono::milliseconds owners_turn{1};

CloseAside& aside() {
    static auto& all = *new CloseAside; // a thread that is left behind may outlive what main() leaves
    return all;
}

/// True for what close(2) may wait for: a connection that lingers, or no socket.
bool may_wait(int fd) {
    const auto linger = option<::linger>(fd, SO_LINGER);
    return !linger || linger->l_onoff != 0;
}

/// False for a local socket, in which others may be on their way (SCM_RIGHTS): one that lingers may be closed
/// with it. Nor is it known what those of rarer families wait for.
bool is_of_internet(int fd) {
    const auto domain = option<int>(fd, SO_DOMAIN);
    return domain == AF_INET || domain == AF_INET6;
}

void close_soon(Fd fd) {
    thread_local const Interruptions interruptions;
    interruptions.begin();
    fd.reset();
    interruptions.end();
}

/// Of the lines of net_cls and net_prio in /proc/PID/cgroup, as they are; {} where there are none.
std::vector<std::string> class_lines(const std::string& process) {
    std::vector<std::string> lines;
    std::ifstream file("/proc/" + process + "/cgroup");
    for (std::string line; std::getline(file, line);) {
        const auto begin = line.find(':'), end = line.find(':', begin + 1);
        if (begin == std::string::npos || end == std::string::npos) continue;
        const auto controllers = "," + line.substr(begin + 1, end - begin - 1) + ",";
        if (controllers.contains(",net_cls,") || controllers.contains(",net_prio,")) lines.push_back(line);
    }
    return lines;
}

std::optional<tcp_info> info_of(int fd) {
    if (option<int>(fd, SO_PROTOCOL) != IPPROTO_TCP) return std::nullopt;
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
    return info;
}

} // namespace

ForeignSocket::~ForeignSocket() {
    if (!fd_) return;
    if (may_wait(fd_.get()))
        aside().close(std::move(fd_));
    else if (!is_of_internet(fd_.get()))
        close_soon(std::move(fd_));
}

bool ForeignSocket::accepts() const {
    const auto protocol = option<int>(fd_.get(), SO_PROTOCOL);
    return protocol == IPPROTO_TCP && option<int>(fd_.get(), SO_ACCEPTCONN).value_or(0) != 0;
}

std::optional<std::uint64_t> ForeignSocket::cookie() const {
    return option<std::uint64_t>(fd_.get(), SO_COOKIE);
}

bool ForeignSocket::begin_use(InUse& at) const {
    const auto own = cookie().value_or(0);
    if (is_avoided({Avoid::cookie, own})) return false;
    at.cookie = own;
    return true;
}

bool ForeignSocket::shares_port() const { return option<int>(fd_.get(), SO_REUSEPORT).value_or(0) != 0; }

std::optional<int> ForeignSocket::incoming_cpu() const { return option<int>(fd_.get(), SO_INCOMING_CPU); }

unsigned ForeignSocket::napi_id() const {
    return option<unsigned>(fd_.get(), SO_INCOMING_NAPI_ID).value_or(0);
}

std::optional<std::chrono::milliseconds> ForeignSocket::silence() const {
    const auto info = info_of(fd_.get());
    if (!info || info->tcpi_state != TCP_ESTABLISHED) return std::nullopt;
    return std::chrono::milliseconds(info->tcpi_last_data_recv);
}

std::optional<unsigned> ForeignSocket::backlog() const {
    const auto info = info_of(fd_.get());
    return info && info->tcpi_state == TCP_LISTEN ? std::optional(info->tcpi_unacked) : std::nullopt;
}

int ForeignSocket::set_incoming_cpu(int cpu) const {
    return ::setsockopt(fd_.get(), SOL_SOCKET, SO_INCOMING_CPU, &cpu, sizeof cpu) == 0 ? 0 : errno;
}

std::vector<std::uint8_t> ForeignSocket::bound_to() const {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&address);
    std::vector<std::uint8_t> found(bytes, bytes + std::min<std::size_t>(size, sizeof address));
    const auto add = [&](std::uint64_t value) {
        for (unsigned shift = 0; shift < 64; shift += 8)
            found.push_back(static_cast<std::uint8_t>(value >> shift));
    };
    add(static_cast<unsigned>(option<int>(fd_.get(), SO_BINDTOIFINDEX).value_or(0)));
    add(option<std::uint64_t>(fd_.get(), SO_NETNS_COOKIE).value_or(0)); // Linux 5.14
    if (address.ss_family == AF_INET6)
        add(static_cast<unsigned>(option<int>(fd_.get(), IPV6_V6ONLY, IPPROTO_IPV6).value_or(0)));
    return found;
}

std::uint16_t ForeignSocket::port() const {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
    if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
    if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
    return 0;
}

bool in_other_class(int pid) {
    static std::mutex mutex;
    static auto& own = *new std::vector<std::string>; // as above
    static std::chrono::steady_clock::time_point until{};
    const std::lock_guard lock(mutex);
    if (const auto now = std::chrono::steady_clock::now(); now >= until) { // the kernel locks for it
        own = class_lines("self");
        until = now + std::chrono::minutes(1);
    }
    if (own.empty()) return false;
    const auto its = class_lines(std::to_string(pid));
    return !its.empty() && its != own; // without a line it has ended
}

std::string why_not_reached(int code) {
    if (code == EXDEV)
        return "it is in another cgroup of net_cls or net_prio than affinityd, and its sockets would lose "
               "their class";
    if (code == EAGAIN) return "too many system calls on the sockets of others do not come back";
    if (code == EBUSY) return "system calls on its sockets, or on others, did not come back in time";
    if (code == EINPROGRESS) return "a system call on it has not come back yet";
    if (code == EDQUOT) return "its user's processes take too long to look at";
    if (code == EOWNERDEAD) return "it still listens, but no process was found that has it open";
    return std::strerror(code);
}

std::expected<ForeignFiles, int> ForeignFiles::open(int pid) {
    if (is_process_avoided(pid)) return std::unexpected(EBUSY);
    Fd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0U)));
    if (!fd) return std::unexpected(errno);
    if (in_other_class(pid)) return std::unexpected(EXDEV);
    return ForeignFiles(std::move(fd), pid);
}

std::optional<std::uint64_t> ForeignFiles::inode(int number) const {
    return socket_inode(AT_FDCWD, "/proc/" + std::to_string(pid_) + "/fd/" + std::to_string(number));
}

void ForeignFiles::let_owner_close_last(int number, std::uint64_t inode) const {
    if (this->inode(number) != inode) std::this_thread::sleep_for(owners_turn);
}

std::expected<ForeignSocket, int> ForeignFiles::socket(int number) const {
    if (aside().waiting() >= most_waiting) return std::unexpected(EBUSY);
    // To close a file of another kind may wait for its file system, which may be its owner's own (FUSE).
    std::array<char, 16> kind{};
    const auto link = "/proc/" + std::to_string(pid_) + "/fd/" + std::to_string(number);
    if (::readlink(link.c_str(), kind.data(), kind.size()) < 0)
        return std::unexpected(errno == ENOENT ? EBADF : errno);
    if (!std::string_view(kind.data(), kind.size()).starts_with("socket:[")) return std::unexpected(ENOTSOCK);
    Fd fd(static_cast<int>(::syscall(SYS_pidfd_getfd, fd_->get(), number, 0U)));
    if (!fd) return std::unexpected(errno);
    ForeignSocket socket(std::move(fd));
    if (!option<int>(socket.fd_.get(), SO_TYPE)) return std::unexpected(ENOTSOCK); // another one by now
    return socket;
}

} // namespace affinityd::host
