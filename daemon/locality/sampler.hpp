// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "base/error.hpp"
#include "host/foreign_socket.hpp"
#include "host/root.hpp"
#include "locality/read_counts.hpp"
#include "locality/samples.hpp"
#include "locality/socket_readers.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace affinityd::locality {

/// Looks at connected TCP sockets of processes now and then, one at a time, and notes for each over which
/// data came since the last look where the kernel took it in, and where the thread that reads it last ran. An
/// estimate: one sample stands for any number of reads. Not for an event loop: a process may have very many
/// descriptors.
class Sampler {
  public:
    using Clock = std::chrono::steady_clock;
    using GoesOn = SocketReaders::GoesOn;
    /// `root` must outlive it.
    explicit Sampler(const host::Root& root)
        : root_(&root),
          possible_(root.sys().cpu_list("devices/system/cpu/possible").value_or(CpuSet::range(0, 8191))) {}

    /// One look at `most` sockets of these processes together, each having its share; the next ones have
    /// their turn the next time. Processes that have gone are left out. Nothing is begun with once
    /// `goes_on` is false. `first`: with which of the processes it begins, in their order; counted round.
    void look(std::span<const int> pids, std::size_t most, const GoesOn& goes_on, std::size_t first = 0);
    /// Adds what was sampled since the last call.
    void take(ReadCounts& into);
    /// Forgets all other processes. `pids` ascend.
    void keep_only(std::span<const int> pids);

    /// Sockets whose reading thread is not known.
    [[nodiscard]] std::uint64_t unplaced() const { return unplaced_; }
    /// errno of the last socket that could not be had since the last call; 0: none. Its process is not
    /// looked at again.
    [[nodiscard]] int take_refused() { return std::exchange(last_refused_, 0); }

  private:
    struct Process {
        explicit Process(const host::Root& root, int pid) : readers(root, pid) {}
        SocketReaders readers;
        int next = 0; ///< the descriptor where the next look begins
        std::uint64_t network_space = 0;
        std::uint64_t start_time = 0; ///< tells a later process of the same number apart
        Clock::time_point last{};
        bool is_refused = false; ///< a security module forbids it: it would note each further try
    };
    struct Bounds {
        std::size_t most;                ///< sockets
        std::chrono::milliseconds since; ///< data came in
    };
    [[nodiscard]] std::size_t look_at(int pid, std::size_t most, const GoesOn& goes_on);
    [[nodiscard]] std::size_t look_through(int pid, Process& process, const Bounds& bounds,
                                           const GoesOn& goes_on);
    [[nodiscard]] bool is_present(int pid, Process& process);
    struct Connection {
        std::chrono::milliseconds silence{}; ///< since data came in
        std::optional<unsigned> arrival{};   ///< CPU; no value: not known
        unsigned napi = 0;
    };
    [[nodiscard]] std::optional<Connection> look_into(const host::ForeignFiles& files, int number,
                                                      std::uint64_t inode);
    bool sample(int pid, const Process& process, const host::ForeignFiles& files,
                const host::Dir& descriptors, int number, std::chrono::milliseconds since);

    const host::Root* root_;
    CpuSet possible_; ///< CPUs that this machine may have
    std::map<int, Process> processes_;
    Samples samples_;
    std::map<int, std::string> names_;
    std::uint64_t unplaced_ = 0;
    int refused_ = 0;      ///< of the process that is looked at
    int last_refused_ = 0; ///< of all
};

} // namespace affinityd::locality
