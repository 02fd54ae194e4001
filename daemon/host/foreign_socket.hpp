// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/fd.hpp"

#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::host {

struct InUse;

/// A socket that another process has open, by a descriptor of our own for the same open file. While that is
/// held, a connection that its owner closes stays open on the wire: it is held for a few system calls, never
/// across a wait. To close it may take as long as its owner likes (SO_LINGER): a thread does that then, and
/// nobody waits for it; nor for more than some milliseconds for one that a local socket carries. What is
/// marked "takes the lock" may take as long, too: see patiently(). Source: socket(7),
/// include/uapi/asm-generic/socket.h.
class ForeignSocket {
  public:
    /// True for a TCP socket that accepts connections.
    [[nodiscard]] bool accepts() const;
    /// SO_COOKIE: what no other socket of this boot has; no value: it is no socket.
    [[nodiscard]] std::optional<std::uint64_t> cookie() const;
    /// Notes its cookie as what a call uses, see patiently(). False: it is avoided, and is to be left.
    [[nodiscard]] bool begin_use(InUse& at) const;
    /// SO_REUSEPORT: others may be bound to its address, too, and share the connections.
    [[nodiscard]] bool shares_port() const;
    /// SO_INCOMING_CPU. Of a listener: the CPU whose connections it is to get, -1 if nobody has said; of a
    /// connection: on which its last packet arrived, -1 if none has. No value: it cannot be read.
    [[nodiscard]] std::optional<int> incoming_cpu() const;
    /// SO_INCOMING_NAPI_ID: of the queue where its last packet arrived; 0: not known.
    [[nodiscard]] unsigned napi_id() const;
    /// How long ago data came in over an established TCP connection; no value: it is something else. Takes
    /// the lock.
    [[nodiscard]] std::optional<std::chrono::milliseconds> silence() const;
    /// How many connections wait to be accepted from a listener; no value: it is none. Takes no lock. Source:
    /// tcp_get_info() in net/ipv4/tcp.c.
    [[nodiscard]] std::optional<unsigned> backlog() const;
    /// Sets that of a listener; -1 takes it back. The errno value, 0 on success. Takes the lock.
    [[nodiscard]] int set_incoming_cpu(int cpu) const;
    /// What it is bound to: family, port, address, interface and network namespace, and whether it takes
    /// IPv4, too, as bytes to be compared; {}: not known. Listeners with SO_REUSEPORT that are bound to the
    /// same share its connections (inet_reuseport_add_sock in net/ipv4/inet_hashtables.c). Takes the lock.
    [[nodiscard]] std::vector<std::uint8_t> bound_to() const;
    /// The local port in host byte order, 0: it has none. Takes the lock.
    [[nodiscard]] std::uint16_t port() const;

    ForeignSocket(ForeignSocket&&) = default;
    ForeignSocket& operator=(ForeignSocket&&) = delete;
    ForeignSocket(const ForeignSocket&) = delete;
    ForeignSocket& operator=(const ForeignSocket&) = delete;
    ~ForeignSocket();

  private:
    friend class ForeignFiles;
    explicit ForeignSocket(Fd fd) : fd_(std::move(fd)) {}
    Fd fd_;
};

/// The open files of one process, which cannot be mistaken for those of a later one with its number:
/// pidfd_open(2), pidfd_getfd(2). Needs Linux 5.6 and CAP_SYS_PTRACE; a security module may forbid it all the
/// same. Copies are of the same process.
class ForeignFiles {
  public:
    /// Whoever has this number now: the caller makes sure afterwards that it is who was meant. The errno
    /// value: ESRCH, EMFILE, ENOSYS; EBUSY: a call into its files did not come back, see
    /// is_process_avoided(); EXDEV: see in_other_class().
    [[nodiscard]] static std::expected<ForeignFiles, int> open(int pid);
    /// The socket behind its descriptor `number`. The errno value: EBADF: it has no such one; ENOTSOCK: it is
    /// something else, which is not touched; ESRCH: it has ended; EPERM: not allowed; ENOSYS: a kernel before
    /// 5.6; EBUSY: too many wait to be closed.
    [[nodiscard]] std::expected<ForeignSocket, int> socket(int number) const;
    /// Of the socket behind its descriptor, which is not touched; no value: it is something else, or closed.
    [[nodiscard]] std::optional<std::uint64_t> inode(int number) const;
    /// Before a ForeignSocket that was `inode` is let go: waits a millisecond if its owner has closed it
    /// meanwhile. While that one is about to wait in epoll_wait(2), the kernel holds the file, too, and if it
    /// lets go last, ends the connection only when the owner is woken again, perhaps minutes later. Once it
    /// sleeps, the last to let go is we.
    void let_owner_close_last(int number, std::uint64_t inode) const;
    [[nodiscard]] int pid() const { return pid_; }

  private:
    ForeignFiles(Fd fd, int pid) : fd_(std::make_shared<const Fd>(std::move(fd))), pid_(pid) {}
    std::shared_ptr<const Fd> fd_;
    int pid_;
};

/// True for a process in another cgroup of net_cls or net_prio (cgroups v1) than this one: the kernel gives a
/// socket that somebody takes into his own files the class of that one (receive_fd in fs/file.c), so its
/// sockets are not to be looked at.
[[nodiscard]] bool in_other_class(int pid);

/// What an errno value of ForeignFiles means, for people.
[[nodiscard]] std::string why_not_reached(int code);

} // namespace affinityd::host
