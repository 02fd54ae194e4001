// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/locality/event_reads.hpp"
#include "affinityctl/locality/members.hpp"
#include "locality/read_counts.hpp"
#include "locality/sampler.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace affinityctl {

/// Sees for some time who reads where the kernel takes packets in: by event where BPF is allowed, else by
/// sampling sockets.
class LocalityWatch {
  public:
    /// `ask` is the daemon's GetStatus. `root` must outlive it.
    LocalityWatch(const affinityd::host::Root& root, const LocalitySubject& subject,
                  std::function<nlohmann::json()> ask);

    /// Begins to count, `with_others`: not only TCP. `why_not`: the reason not to count by event; "": count
    /// so if it can be.
    void begin(const std::string& why_not, bool with_others);
    /// Watches until the time is over, the only process that is meant has ended, or `wait`, which waits for
    /// so long, says that the user wants no more.
    void run(std::chrono::milliseconds time, const std::function<bool(std::chrono::milliseconds)>& wait);
    /// What was seen, of all processes; to be called once, after run(). An Error: it cannot be read.
    [[nodiscard]] affinityd::Result<affinityd::locality::ReadCounts> take();

    [[nodiscard]] bool is_meant(int pid) const { return members_.contains(pid); }
    /// "": every read is counted.
    [[nodiscard]] const std::string& why_sampled() const { return why_sampled_; }

  private:
    void look(std::chrono::steady_clock::time_point end);
    void take_samples(affinityd::locality::ReadCounts& into);
    [[nodiscard]] bool has_ended() const;

    const affinityd::host::Root* root_;
    LocalitySubject subject_;
    Members members_;
    std::optional<EventReads> events_;
    affinityd::locality::Sampler samples_;
    std::string why_sampled_;
    std::map<int, std::string> readers_;
    std::chrono::steady_clock::time_point began_{};
};

} // namespace affinityctl
