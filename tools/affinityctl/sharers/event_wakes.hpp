// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/sharers/wakes.hpp"
#include "base/error.hpp"
#include "host/root.hpp"

#include <memory>

namespace affinityctl {

/// Counts in the kernel which threads of a process wake each other, by a BPF program at the tracepoint
/// sched:sched_waking and three that follow packets to this machine itself (netif_rx, netif_receive_skb,
/// napi_poll). It counts from watch() to its end; nothing of it outlives this process.
/// Source: bpf/wakes.bpf.c.
class EventWakes {
  public:
    /// Loads the programs and makes sure, by wake-ups of this program's own whose origin it knows
    /// (known_wakes.hpp), that this kernel tells interrupts from tasks. An Error says why it cannot count:
    /// not built in, no BTF, no permission, another PID namespace, a kernel that does not tell.
    static affinityd::Result<EventWakes> open(const affinityd::host::Root& root);
    EventWakes(EventWakes&&) noexcept;
    EventWakes& operator=(EventWakes&&) noexcept;
    ~EventWakes();

    /// Counts the wake-ups of this process's threads from now on; to be called once.
    void watch(int pid);
    // A program that wakes its threads very often is not to pay for it: what costs is to look at all.

    /// So many wake-ups on each CPU are counted one by one after look(), fewer if it looks at a part of the
    /// time; beyond that one in 16 counts for all.
    static constexpr unsigned exact_at_once = 16384;
    /// Looks from now on, for one part of the time of `parts`: each wake-up counts for so many. An Error: the
    /// kernel does not let it look again.
    [[nodiscard]] affinityd::Result<void> look(unsigned parts);
    /// There were more than exact_at_once on a CPU since the last look.
    [[nodiscard]] bool were_many() const;
    /// Does not look until the next look(): wake-ups cost nothing until then.
    void rest();
    /// Counts no more.
    void stop();
    /// The counts: all but `seconds`, and of the threads the names only.
    [[nodiscard]] affinityd::Result<Wakes> take() const;

  private:
    struct Programs;
    explicit EventWakes(std::unique_ptr<Programs> programs);
    std::unique_ptr<Programs> programs_;
};

} // namespace affinityctl
