// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/loading.hpp"
#include "app/steering.hpp"
#include "app/tasks.hpp"
#include "app/units.hpp"
#include "status/status.hpp"

#include <chrono>
#include <string>
#include <unordered_map>
#include <vector>

namespace affinityd::app {

/// What cannot be had now, and since when. One problem whose text has only other numbers in it is the same.
class Problems {
  public:
    using Time = std::chrono::system_clock::time_point;
    /// Where problems come from. References must outlive this; they are used by the calls only.
    struct Sources {
        const Loading& loading;
        const Current& current;
        const enforcer::Executor& executor;
        Tasks& tasks;
        const Units& units;
        const Steering& steering;
        const host::Root& root;
        const Settings& settings;
    };
    explicit Problems(const Sources& sources) : sources_(sources) {}

    /// A pass has ended: all processes have been seen, and problems that are new began now at the latest.
    void end_pass();
    /// All that there are now, the newest first.
    [[nodiscard]] std::vector<status::ProblemStatus> list();
    [[nodiscard]] Time last_pass() const { return last_pass_; } ///< its end; the epoch: there was none

  private:
    [[nodiscard]] std::vector<status::ProblemStatus> present() const;
    Sources sources_;
    Time last_pass_{};
    std::unordered_map<std::string, Time> since_;
};

} // namespace affinityd::app
