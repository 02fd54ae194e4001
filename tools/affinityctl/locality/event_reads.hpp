// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/root.hpp"
#include "locality/read_counts.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace affinityctl {

/// Flows that came in through one interface, those that are stacked on it included.
struct DeviceFilter {
    std::uint64_t network_space = 0; ///< inode of the namespace that the interfaces are in
    std::vector<unsigned> devices;   ///< ifindex; empty: all flows, of all namespaces
};

/// Counts each read of a socket in the kernel, by a BPF program at the tracepoint tcp:tcp_rcv_space_adjust
/// and, if wanted and where the kernel has it (6.3), sock:sock_recv_length for all that is not TCP: that one
/// is called for each read of TCP, too, and costs a busy server some percent. It counts from open() to its
/// end; nothing of it outlives this process. Source: bpf/reads.bpf.c.
class EventReads {
  public:
    /// An Error says why it cannot be: not built in, no BTF, no permission, another PID namespace.
    static affinityd::Result<EventReads> open(const affinityd::host::Root& root, const DeviceFilter& filter,
                                              bool with_others);
    EventReads(EventReads&&) noexcept;
    EventReads& operator=(EventReads&&) noexcept;
    ~EventReads();

    /// False: TCP only.
    [[nodiscard]] bool has_other_protocols() const;
    /// The processes that have read up to now, with the name of a thread of each.
    [[nodiscard]] affinityd::Result<std::map<int, std::string>> readers() const;
    /// What was counted up to now: counts, lost and in_softirq.
    [[nodiscard]] affinityd::Result<void> take(affinityd::locality::ReadCounts& seen) const;

  private:
    struct Program;
    explicit EventReads(std::unique_ptr<Program> program);
    std::unique_ptr<Program> program_;
};

} // namespace affinityctl
