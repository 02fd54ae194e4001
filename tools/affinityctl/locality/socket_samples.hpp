// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/locality/socket_readers.hpp"
#include "affinityctl/values/read_counts.hpp"
#include "base/error.hpp"
#include "host/fd.hpp"
#include "host/root.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace affinityctl {

/// Where BPF cannot be had: looks at the connected TCP sockets of processes now and then, one socket at a
/// time, and notes for each over which data came since the last look where the kernel took it in, and where
/// the thread that reads it last ran. An estimate: one sample stands for any number of reads.
class SocketSamples {
  public:
    static constexpr std::size_t most_sockets =
        200; ///< of one process in one look; the next ones the next time
    /// `root` must outlive it.
    explicit SocketSamples(const affinityd::host::Root& root) : root_(&root) {}

    /// One look at these processes; those that have gone are left out. No second socket is begun with after
    /// `end`.
    void look(const std::vector<int>& pids, std::chrono::steady_clock::time_point end);
    /// What was sampled up to now: counts, names and notes.
    void take(ReadCounts& seen) const;

  private:
    struct Process {
        explicit Process(const affinityd::host::Root& root, int pid) : readers(root, pid) {}
        SocketReaders readers;
        std::size_t next = 0; ///< place among its sockets where the next look begins
        std::uint64_t network_space = 0;
        std::uint64_t start_time = 0; ///< tells a later process of the same number apart
        std::chrono::steady_clock::time_point last{};
    };
    void look_at(int pid, Process& process, std::chrono::steady_clock::time_point end);
    void sample(int pid, const Process& process, const affinityd::host::Fd& handle, int descriptor,
                std::chrono::milliseconds since);
    [[nodiscard]] std::vector<int> sockets_of(int pid) const;

    const affinityd::host::Root* root_;
    std::map<int, Process> processes_;
    std::map<std::array<std::uint64_t, 5>, std::uint64_t>
        counts_; ///< pid, network space, napi, arrival, reader
    std::map<int, std::string> names_;
    std::uint64_t unplaced_ = 0; ///< sockets whose thread is not known
    int refused_ = 0;            ///< errno of the last socket that could not be had; 0: none
};

} // namespace affinityctl
