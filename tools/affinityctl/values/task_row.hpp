// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"

#include <optional>
#include <string>
#include <vector>

namespace affinityctl {

/// One thread under policy, as it runs now.
struct TaskRow {
    int pid = 0;
    int tid = 0;
    std::string comm; ///< any bytes: show it through printable()
    std::string policy;
    std::string state;           ///< as the daemon reports it: "in place", "yielded" ...
    int cpu = 0;                 ///< where it runs or ran last
    affinityd::CpuSet mask;      ///< from the kernel, not from the daemon
    affinityd::CpuSet wanted;    ///< empty: the policy leaves it alone
    std::optional<double> share; ///< of one CPU since the last sample, 0..1; no value: it was not there then
    std::optional<double> migrations; ///< per second since the last sample; no value: also where the
                                      ///< kernel does not count them

    /// It has run since the last sample and since its mask was set, and where its policy does not want it.
    [[nodiscard]] bool is_astray() const;
};

enum class RowOrder { share, migrations, cpu, pid, name };
inline constexpr const char* row_orders[] = {"share", "migrations", "cpu", "pid", "name"};

/// Greatest first for share and migrations, else ascending; equal ones by tid, so that rows do not jump.
void sort_rows(std::vector<TaskRow>& rows, RowOrder order, bool reversed);

} // namespace affinityctl
