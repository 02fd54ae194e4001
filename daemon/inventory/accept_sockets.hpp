// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"
#include "host/foreign_socket.hpp"
#include "host/root.hpp"
#include "inventory/known_files.hpp"
#include "inventory/listening_sockets.hpp"
#include "inventory/port_sample.hpp"

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

namespace affinityd::inventory {

/// A TCP listener that a process has open and waits on.
struct AcceptSocket {
    std::uint64_t cookie = 0; ///< SO_COOKIE: no other socket of this boot has it
    int number = 0;           ///< the process's descriptor
    std::uint16_t port = 0;
    std::vector<std::uint8_t> bound_to; ///< as host::ForeignSocket: listeners of one group have the same
    bool shares_port = false;           ///< SO_REUSEPORT
    int incoming_cpu = -1;              ///< SO_INCOMING_CPU, -1: not set
    std::vector<int> threads; ///< that take connections from it, as far as seen, ascending, the first ten
    /// Connections that came, and have not ended, since what its epolls watch was read before, about: what a
    /// proxy connects to itself does not count, as far as descriptors are looked at. 0 the first time; no
    /// value: that was not read now, or nobody has an epoll for it.
    std::optional<std::size_t> accepted{};
    std::uint64_t inode = 0;
    /// It has connections at the moment, or may have: what its threads did may be for these.
    bool is_serving = false;
    /// CPU time of these threads since they were read before, see AcceptWork.
    std::optional<std::size_t> work{};
    std::optional<std::size_t> waiting{}; ///< connections that were not accepted yet; no value: not known
    friend bool operator==(const AcceptSocket&, const AcceptSocket&) = default;
};

/// Those of one process.
struct AcceptSockets {
    TaskId process;
    int parent = 0;                      ///< its process id, 0: none
    std::vector<AcceptSocket> sockets{}; ///< by descriptor
    /// Why its sockets cannot be looked at: EPERM, ENOSYS and others (see host::ForeignFiles), EMFILE; ESRCH:
    /// it has ended; EDQUOT: its user's processes take too long.
    int code = 0;
    std::size_t left_out = 0;          ///< listeners that were not looked at, as it has too many
    std::vector<std::uint64_t> held{}; ///< inodes of listeners that it has open, whether it waits or not
    std::shared_ptr<const ListeningSockets> around{}; ///< who listens in its namespace; null: not known
    bool knows_all = true; ///< false: it may have other listeners, or others its addresses
    bool is_cut = false;   ///< it has more descriptors than are looked at
    uid_t user = 0;        ///< whose process it is, as a person
    std::map<std::uint16_t, PortSample> samples{}; ///< by port, from which `accepted` is estimated
    /// Connections that were accepted in its network namespace since that was made, by anybody.
    std::optional<std::uint64_t> opened{};
    /// System calls on what it has open did not come back in time: soon they may.
    [[nodiscard]] bool is_avoided() const { return code == EBUSY || code == EAGAIN; }
    friend bool operator==(const AcceptSockets&, const AcceptSockets&) = default;
};

/// Where a process is, as far as known before it is looked at.
struct AcceptAround {
    uid_t user = 0; ///< whose it is, as a person
    /// Who listens in its network namespace, so that only listeners are looked into; null: not known.
    std::shared_ptr<const ListeningSockets> listening{};
};

/// Finds out from which listeners processes accept connections, and in which thread: by the epolls that watch
/// these and by the system calls in which threads wait. A thread that runs at the moment is not seen; what
/// was seen is remembered. An accept by io_uring, poll(2) or select(2) is not seen. Of a process, the first
/// 2,048 descriptors, 1,024 threads and 256 epolls are looked at, and the first 1,024 of its listeners: they
/// and epolls are opened before connections. Not for the event loop: an epoll with many connections has a
/// long list.
class AcceptReader {
  public:
    static constexpr std::size_t most_descriptors = 2048, most_sockets = 1024, most_threads = 1024,
                                 most_epolls = 256;
    using GoesOn = std::function<bool()>; ///< asked before each longer step: false ends it

    /// `root` is this machine's, and must outlive it. `most_remembered`: files that epolls watch, of all
    /// processes, at 4 bytes each; of the others only the number.
    explicit AcceptReader(const host::Root& root, std::size_t most_remembered = 1U << 20)
        : root_(root), most_remembered_(most_remembered) {}

    /// What `goes_on` cuts short has the code EDQUOT.
    [[nodiscard]] AcceptSockets read(
        const TaskId& process, AcceptAround around = {}, const GoesOn& goes_on = [] { return true; });
    /// What was remembered of all other processes is forgotten.
    void keep_only(std::span<const TaskId> processes);

  private:
    using Waiters = std::map<int, std::set<int>>; ///< threads that waited, by the epoll's descriptor
    /// What an epoll watches. The kernel stops its owner while it writes that down: of one that watches very
    /// many, it is read seldom, and then together with all such ones, so that they can be compared.
    struct Watched {
        std::vector<std::uint64_t> sockets; ///< of those that concerned us, inodes, ascending
        KnownFiles files;
        std::chrono::steady_clock::time_point next{};
    };
    using Acceptors = std::map<std::uint64_t, std::set<int>>; ///< threads that waited in accept(2), by inode
    struct Seen {
        Waiters waiters;
        Acceptors acceptors;
        std::map<int, Watched> epolls;
    };
    struct Files;
    [[nodiscard]] Files list(AcceptSockets& found) const;
    void add_epolls(const TaskId& process, Files& files, const GoesOn& goes_on);
    [[nodiscard]] std::optional<KnownFiles::Fresh> read_watched(const TaskId& process, int epoll,
                                                                const Files& files, Watched& watched);
    void see_waiting(int pid, const std::vector<int>& threads, Files& files);
    void find_waiters(const TaskId& process, Files& files);
    void remember_acceptors(const TaskId& process, const std::vector<int>& threads, Files& files);
    void look_into(const host::ForeignFiles& theirs, const Files& files, AcceptSockets& found,
                   const GoesOn& goes_on) const;
    const host::Root& root_;
    std::size_t most_remembered_;
    std::size_t remembered_ = 0;
    std::chrono::steady_clock::time_point next_long_{}; ///< when epolls that watch very many are read again
    std::unordered_map<TaskId, Seen> seen_;
};

} // namespace affinityd::inventory
