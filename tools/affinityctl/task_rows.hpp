// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "host/root.hpp"
#include "inventory/run_record.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace affinityctl {

/// One thread under policy, as it runs now.
struct TaskRow {
    int pid = 0;
    int tid = 0;
    std::string comm; ///< any bytes: to be shown through printable()
    std::string policy;
    std::string state;           ///< the daemon's word: "in place", "yielded" ...
    int cpu = 0;                 ///< where it runs or ran last
    affinityd::CpuSet mask;      ///< the kernel's word, not the daemon's
    affinityd::CpuSet wanted;    ///< empty: the policy leaves it alone
    std::optional<double> share; ///< of one CPU since the sample before, 0..1; nothing: it was not there then
    std::optional<double> migrations; ///< per second since the sample before; nothing: also where the kernel
                                      ///< does not count them

    /// It runs where its policy does not want it.
    [[nodiscard]] bool is_astray() const;
};

enum class RowOrder { share, migrations, cpu, pid, name };
inline constexpr const char* row_orders[] = {"share", "migrations", "cpu", "pid", "name"};

/// Greatest first for share and migrations, else ascending; equal ones by tid, so that rows do not jump.
void sort_rows(std::vector<TaskRow>& rows, RowOrder order, bool reversed);

/// Looks at the threads that the daemon names, and counts from the look before.
class TaskSampler {
  public:
    explicit TaskSampler(const affinityd::host::Root& root) : root_(&root) {}

    /// `status`: the daemon's GetStatus; `policy`: of this one only, "" for all. Threads that have gone are
    /// left out.
    std::vector<TaskRow> sample(const nlohmann::json& status, const std::string& policy);

  private:
    struct Look {
        affinityd::inventory::RunRecord record;
        std::chrono::steady_clock::time_point at;
    };
    const affinityd::host::Root* root_;
    std::map<int, Look> before_; ///< by tid
};

} // namespace affinityctl
