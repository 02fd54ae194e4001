// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/document.hpp"
#include "base/cpu_set.hpp"
#include "host/root.hpp"
#include "inventory/process_files.hpp"

#include <chrono>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace affinityctl {

/// One thread under policy, as it runs now.
struct TaskRow {
    int pid = 0;
    int tid = 0;
    std::string comm; ///< any bytes
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

extern const Fields watch_fields;
[[nodiscard]] nlohmann::json watch_json(const std::vector<TaskRow>& rows);

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

/// The rows that a person has chosen to see. Pure, so that tests need no terminal.
class WatchView {
  public:
    enum class Key { quit, up, down, page_up, page_down, home, end, next_order, reverse, pause, none };

    /// False: the watch is over. `rows` exist, and the terminal shows `lines` of them.
    bool press(Key key, std::size_t rows, std::size_t lines);

    /// First row to show. No line stays empty while there are rows to fill it.
    [[nodiscard]] std::size_t top(std::size_t rows, std::size_t lines) const;
    [[nodiscard]] RowOrder order() const { return order_; }
    [[nodiscard]] bool is_reversed() const { return reversed_; }
    [[nodiscard]] bool is_paused() const { return paused_; }

  private:
    std::size_t top_ = 0;
    RowOrder order_ = RowOrder::share;
    bool reversed_ = false;
    bool paused_ = false;
};

} // namespace affinityctl
