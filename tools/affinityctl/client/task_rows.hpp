// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/document.hpp"
#include "base/cpu_set.hpp"
#include "host/root.hpp"
#include "inventory/process_files.hpp"

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace affinityctl {

extern const Fields watch_fields;

/// True: the thread has run since the last sample and since its mask was set, where its policy does not want
/// it. A thread that sleeps since then is still counted on its old CPU and moves as it wakes: the kernel runs
/// no thread outside its mask. No `wanted`: the policy leaves it alone.
[[nodiscard]] bool is_astray(unsigned cpu, const affinityd::CpuSet& mask, const affinityd::CpuSet& wanted,
                             double share);

inline constexpr const char* row_orders[] = {"share", "migrations", "cpu", "pid", "name"};

/// Greatest first for share and migrations, else ascending; equal ones by tid, so that rows do not jump.
void sort_rows(nlohmann::json& rows, const std::string& order, bool reversed);

/// Reads the threads that the daemon names, and counts from the sample before.
class TaskSampler {
  public:
    explicit TaskSampler(const affinityd::host::Root& root) : root_(&root) {}

    /// Rows of `watch_fields`. `status` is the daemon's GetStatus, `policy` limits it to one policy ("":
    /// all). Threads that have gone are left out.
    [[nodiscard]] nlohmann::json sample(const nlohmann::json& status, const std::string& policy);

  private:
    struct Sample {
        affinityd::inventory::RunRecord record;
        std::chrono::steady_clock::time_point at;
    };
    const affinityd::host::Root* root_;
    std::map<int, Sample> before_; ///< by tid
};

} // namespace affinityctl
