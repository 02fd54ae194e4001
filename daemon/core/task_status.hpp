// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/place_thread.hpp"
#include "core/shared.hpp"
#include "core/task_table.hpp"
#include "enforcer/executor.hpp"
#include "host/root.hpp"
#include "status/status.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>

namespace affinityd::core {

/// The holdings of policies, by their names.
using Holdings = std::map<std::string, status::Held, std::less<>>;

/// True if `full` has no interface to go by.
[[nodiscard]] bool acts_as_process(const World& world, std::size_t policy);
/// Processes in other network namespaces to which no way leads, once for each policy that looks for their
/// NICs.
[[nodiscard]] std::vector<status::Finding> way_problems(const World& world, const TaskTable& tasks);
inline constexpr const char* as_process = "affinity: full acts as process";
/// Why it is not known which interfaces serve a process, though its policy goes by them; "": they are known,
/// or do not matter.
[[nodiscard]] std::string nic_note(const World& world, const KnownProcess& process);

/// Tells one status of processes and threads, and counts them, so that the sums are those of what is told.
/// Masks are read for it: since the last look other programs may have changed them, and where the kernel
/// gives no process events, only the next pass knows what has ended.
class TaskStatus {
  public:
    /// References must outlive it.
    explicit TaskStatus(const Shared& shared) : shared_(shared) {}

    /// No value: it has ended.
    [[nodiscard]] std::optional<status::ProcessStatus> process(const KnownProcess& process);
    /// A thread of the process that was told last.
    [[nodiscard]] std::optional<status::ThreadStatus> thread(const KnownThread& thread, int pid);

    [[nodiscard]] const Holdings& holdings() const { return holdings_; }

  private:
    [[nodiscard]] bool read_again(int pid, const KnownThread& thread, status::ThreadStatus& into) const;
    void count_joined(const planner::Joined* joined);
    const Shared& shared_;
    Holdings holdings_;
    Holdings::value_type* holding_ = nullptr; ///< of the process that was told last
    bool gives_way_ = false;                  ///< drift of its policy
};

} // namespace affinityd::core
