// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/locality/subject.hpp"
#include "locality/locality.hpp"
#include "steer/reads.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace affinityctl {

/// The processes that a subject stands for while they come and go. A process that was one of them stays one.
class Members {
  public:
    /// `ask` is the daemon's GetStatus. `root` must outlive it.
    Members(const affinityd::host::Root& root, LocalitySubject subject, std::function<nlohmann::json()> ask);

    /// Finds out about processes, those that are known already excepted. The daemon is asked at most once a
    /// second, and at the `last` look in any case.
    void look(const std::map<int, std::string>& readers, bool is_last);
    [[nodiscard]] bool contains(int pid) const;
    /// False: it ended before anything of it could be read.
    [[nodiscard]] bool is_known(int pid) const;
    /// The name that a process had when it was last looked at; `other` if it never was.
    [[nodiscard]] std::string name(int pid, const std::string& other) const;

  private:
    void look_at(int pid);
    void ask_daemon();
    const affinityd::host::Root* root_;
    LocalitySubject subject_;
    std::function<nlohmann::json()> ask_;
    std::chrono::steady_clock::time_point asked_{};
    std::map<int, std::string> names_; ///< of all that were looked at
    std::set<int> members_;            ///< not used where all are meant
};

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
    /// Everything that was seen, of all processes; to be called once, after run(). An Error: it cannot be
    /// read.
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
