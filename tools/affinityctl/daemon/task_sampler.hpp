// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/values/task_row.hpp"
#include "host/root.hpp"
#include "inventory/process_files.hpp"

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace affinityctl {

/// Reads the threads that the daemon names, and counts from the sample before.
class TaskSampler {
  public:
    explicit TaskSampler(const affinityd::host::Root& root) : root_(&root) {}

    /// `status` is the daemon's GetStatus, `policy` limits it to one policy ("": all). Threads that have gone
    /// are left out.
    std::vector<TaskRow> sample(const nlohmann::json& status, const std::string& policy);

  private:
    void count_since(TaskRow& row, const affinityd::inventory::RunRecord& record,
                     std::chrono::steady_clock::time_point now) const;
    struct Sample {
        affinityd::inventory::RunRecord record;
        std::chrono::steady_clock::time_point at;
    };
    const affinityd::host::Root* root_;
    std::map<int, Sample> before_; ///< by tid
};

} // namespace affinityctl
