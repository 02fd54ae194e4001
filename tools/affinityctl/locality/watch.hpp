// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/locality/members.hpp"
#include "locality/read_counts.hpp"
#include "steer/reads.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace affinityctl {

/// Sees for some time who reads where the kernel takes packets in: by a BPF program.
class LocalityWatch {
  public:
    /// `ask` is the daemon's GetStatus. `root` must outlive it.
    LocalityWatch(const affinityd::host::Root& root, const LocalitySubject& subject,
                  std::function<nlohmann::json()> ask);

    /// Begins to count, `with_others`: not only TCP. An Error says why it cannot be.
    [[nodiscard]] affinityd::Result<void> begin(bool with_others);
    /// Watches until the time is over, the only process that is meant has ended, or `wait`, which waits for
    /// so long, says that the user wants no more.
    void run(std::chrono::milliseconds time, const std::function<bool(std::chrono::milliseconds)>& wait);
    /// What was seen, of all processes; to be called once, after run(). An Error: it cannot be read.
    [[nodiscard]] affinityd::Result<affinityd::locality::ReadCounts> take();

    [[nodiscard]] bool is_meant(int pid) const { return members_.contains(pid); }

  private:
    [[nodiscard]] bool has_ended() const;

    const affinityd::host::Root* root_;
    LocalitySubject subject_;
    Members members_;
    std::optional<affinityd::steer::Reads> events_;
    std::map<int, std::string> readers_;
    std::chrono::steady_clock::time_point began_{};
};

} // namespace affinityctl
