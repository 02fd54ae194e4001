// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"
#include "host/root.hpp"
#include "inventory/ip_address.hpp"

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace affinityd::inventory {

enum class Protocol : std::uint8_t { tcp, udp };
enum class SocketState : std::uint8_t { listen, established, other };

/// A TCP or UDP socket with a local port: 32 bytes, because there may be hundreds of thousands.
struct LocalSocket {
    IpAddress local;
    std::uint32_t inode = 0;     ///< what /proc/PID/fd shows as "socket:[N]"; 0: no process has it open
    std::uint32_t interface = 0; ///< ifindex it is bound to (SO_BINDTODEVICE), 0 for none
    std::uint32_t user = 0;      ///< whose it is: who made it
    std::uint16_t port = 0;      ///< local, host byte order
    Protocol protocol = Protocol::tcp;
    SocketState state = SocketState::other; ///< a UDP socket without a peer listens

    [[nodiscard]] bool listens() const { return state == SocketState::listen; }
    friend bool operator==(const LocalSocket&, const LocalSocket&) = default;
};

/// Reads an answer of sock_diag: a struct inet_diag_msg, linux/inet_diag.h. No value: malformed.
[[nodiscard]] std::optional<LocalSocket> parse_inet_diag(std::span<const std::byte> message,
                                                         Protocol protocol);

/// Reads a line of /proc/net/tcp, tcp6, udp or udp6; no value: the heading, or malformed.
[[nodiscard]] std::optional<LocalSocket> parse_net_line(std::string_view line, Protocol protocol);

/// A list of sockets as a file, and what sock_diag calls the same list.
struct NetFile {
    const char* name; ///< below proc or proc/PID
    Protocol protocol;
    int family; ///< AF_INET or AF_INET6
};
extern const std::array<NetFile, 4> net_files;

/// Hands on the sockets in one of the files below `folder` ("" or "PID/"): of the first `limit` bytes, whole
/// lines only. A file that is not there has none. False: there may be more.
Result<bool> read_net_file(const host::Root& root, const std::string& folder, const NetFile& file,
                           std::size_t limit, const std::function<void(const LocalSocket&)>& take);
/// The same until `take` answers false, and no further, as listeners of TCP come first: then true.
Result<bool> read_first_sockets(const host::Root& root, const std::string& folder, const NetFile& file,
                                std::size_t limit, const std::function<bool(const LocalSocket&)>& take);

/// Ranges of ports, both ends included.
using PortRanges = std::vector<std::pair<std::uint16_t, std::uint16_t>>;

enum class Wanted : std::uint8_t {
    listeners, ///< sockets that listen
    all        ///< and those that are connected
};

/// The TCP and UDP sockets of this process's network namespace. Sockets that no process has open are left
/// out.
struct SocketTable {
    static constexpr std::size_t most_sockets = 1U << 18;             ///< at 36 bytes each
    std::vector<LocalSocket> sockets;                                 ///< by inode
    bool is_truncated = false;                                        ///< there were more than were asked for
    [[nodiscard]] const LocalSocket* find(std::uint64_t inode) const; ///< nullptr: unknown
};

struct SocketQuestion {
    Wanted wanted = Wanted::all;
    /// If there are more, the first are kept: TCP before UDP, IPv4 before IPv6, these in the order of the
    /// kernel's hash table, which is a random sample.
    std::size_t most = SocketTable::most_sockets;
    PortRanges ports{}; ///< none: all count
};

/// By sock_diag(7) on this machine, by proc/net of a recording (and where the kernel has no sock_diag). Not
/// for the event loop: the kernel walks past 100,000 sockets in some 7 ms.
[[nodiscard]] Result<SocketTable> read_socket_table(const host::Root& root, const SocketQuestion& asked);
/// The same of the network namespace of another process (0: this one's), by its files, of each of which the
/// first 4 MiB count (some 28,000 sockets): the owner of a namespace may fill them.
[[nodiscard]] Result<SocketTable> read_sockets_of(const host::Root& root, int pid,
                                                  const SocketQuestion& asked);

/// Inodes of the sockets of a process's network namespace that no network brings anything (unix, netlink),
/// ascending. To list the others costs the kernel a walk through the connections of the whole machine.
[[nodiscard]] std::vector<std::uint64_t> read_local_inodes(const host::Root& root, int pid);

/// Which sockets of this network namespace listen on the ports that matter: listed by a thread once a second
/// while there are such ports, five seconds after a list with news.
class Listeners {
  public:
    /// `root` must outlive it.
    explicit Listeners(const host::Root& root);
    Listeners(const Listeners&) = delete;
    Listeners& operator=(const Listeners&) = delete;

    /// The ports that matter from now on. If they are others than before, the list counts no more.
    void want(PortRanges ports);
    [[nodiscard]] std::shared_ptr<const SocketTable> list() const; ///< the last one; null: none has come yet
    /// Waits for the first list, but for no longer than `patience`. False: there is none that could come.
    [[nodiscard]] bool is_awaited(std::chrono::microseconds patience);
    /// Readable when a socket listens that did not in the list before; -1 if the kernel gave no descriptor.
    [[nodiscard]] int fd() const;
    void take_news();
    /// Why the last list could not be read; the one before counts.
    [[nodiscard]] std::optional<Error> fault() const;

  private:
    void work(const std::stop_token& stop);

    const host::Root& root_;
    const host::Fd news_;
    mutable std::mutex mutex_;
    std::condition_variable_any changed_;
    // Under the mutex:
    PortRanges ports_;
    std::shared_ptr<const SocketTable> list_; ///< null: none of these ports has come yet
    std::optional<Error> fault_;
    std::jthread thread_; ///< last, so that it ends before what it uses
};

/// The ports of these sockets, ascending, each once.
[[nodiscard]] std::vector<std::uint16_t> ports_of(const SocketTable& table,
                                                  const std::vector<std::uint64_t>& inodes);

// `process` is a process's folder below /proc: "PID", or "PID/task/TID" where its main thread has ended.

/// Listening sockets of the namespace that it lives in, by its files net/{tcp,udp}{,6}. Only the
/// first 256 KiB of each are read (some 1,700 sockets): the owner of a namespace may fill them.
[[nodiscard]] Result<std::vector<LocalSocket>> read_namespace_listeners(const host::Root& root,
                                                                        const std::string& process);

/// TCP and UDP ports that the process listens on in the network namespace that it lives in, ascending, each
/// once; none if that is this one. `inodes`: of its sockets, ascending.
[[nodiscard]] std::vector<std::uint16_t> foreign_listen_ports(const host::Root& root,
                                                              const std::string& process,
                                                              const std::vector<std::uint64_t>& inodes);

/// False if the process is known to live in another network namespace than this one.
[[nodiscard]] bool shares_network_namespace(const host::Root& root, int pid);

} // namespace affinityd::inventory
