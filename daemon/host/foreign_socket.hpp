// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/fd.hpp"

#include <cstdint>
#include <expected>
#include <optional>
#include <vector>

namespace affinityd::host {

/// A socket that another process has open, by a descriptor of our own for the same open file. While that is
/// held, a connection that its owner closes stays open on the wire: it is held for a few system calls, never
/// across a wait. Source: socket(7), include/uapi/asm-generic/socket.h.
class ForeignSocket {
  public:
    /// True for a TCP socket that accepts connections.
    [[nodiscard]] bool accepts() const;
    /// SO_COOKIE: what no other socket of this boot has; no value: it is no socket.
    [[nodiscard]] std::optional<std::uint64_t> cookie() const;
    /// SO_REUSEPORT: others may be bound to its address, too, and share the connections.
    [[nodiscard]] bool shares_port() const;
    /// SO_INCOMING_CPU. Of a listener: the CPU whose connections it is to get, -1 if nobody has said; of a
    /// connection: on which its last packet arrived, -1 if none has. No value: it cannot be read.
    [[nodiscard]] std::optional<int> incoming_cpu() const;
    /// Sets that of a listener; -1 takes it back. The errno value, 0 on success.
    [[nodiscard]] int set_incoming_cpu(int cpu) const;
    /// What it is bound to: family, port, address and interface, as bytes to be compared; {}: not known.
    [[nodiscard]] std::vector<std::uint8_t> bound_to() const;
    /// The local port in host byte order, 0: it has none.
    [[nodiscard]] std::uint16_t port() const;

  private:
    friend class ForeignFiles;
    explicit ForeignSocket(Fd fd) : fd_(std::move(fd)) {}
    Fd fd_;
};

/// The open files of one process, which cannot be mistaken for those of a later one with its number:
/// pidfd_open(2), pidfd_getfd(2). Needs Linux 5.6 and CAP_SYS_PTRACE; a security module may forbid it all the
/// same.
class ForeignFiles {
  public:
    /// Whoever has this number now: the caller makes sure afterwards that it is who was meant. The errno
    /// value: ESRCH, EMFILE, ENOSYS.
    [[nodiscard]] static std::expected<ForeignFiles, int> open(int pid);
    /// What is behind its descriptor `number`, a socket or not. The errno value: EBADF: it has no such one;
    /// ESRCH: it has ended; EPERM: not allowed; ENOSYS: a kernel before 5.6.
    [[nodiscard]] std::expected<ForeignSocket, int> socket(int number) const;

  private:
    explicit ForeignFiles(Fd fd) : fd_(std::move(fd)) {}
    Fd fd_;
};

} // namespace affinityd::host
