// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/locality/subject.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace affinityctl {

/// The processes that a subject stands for while they come and go. Who was one of them stays one.
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
    /// Those that run now, for sampling, ascending.
    [[nodiscard]] std::vector<int> present();

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

} // namespace affinityctl
