// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "base/error.hpp"
#include "host/fd.hpp"
#include "measure/ttcp.hpp"

#include <functional>
#include <optional>
#include <vector>

#include <sys/types.h>

namespace affinityd::measure {

/// One end of one stream in a process of its own, as the paper has it (one ttcp process a connection), so
/// that the kernel accounts for it apart. Killed when this object goes, or when the process that made it
/// does. For single-threaded programs.
class Worker {
  public:
    /// Forks; the child takes its place on `cpus` (empty: where it may run anyway), runs `body` and ends.
    static Result<Worker> start(const CpuSet& cpus, const std::function<Result<StreamUse>(Meter&)>& body);
    Worker(Worker&& other) noexcept;
    Worker& operator=(Worker&& other) noexcept;
    ~Worker();

    /// Waits for the result until a CLOCK_MONOTONIC time (0: without limit), then kills. An Error's code is
    /// ETIMEDOUT for that, ECANCELED if the process was killed by somebody else.
    [[nodiscard]] Result<StreamUse> collect(double until);
    [[nodiscard]] pid_t pid() const { return pid_; }
    /// Readable when the result is there or the process has ended; owned by this object.
    [[nodiscard]] int result_fd() const { return result_.get(); }

  private:
    Worker(pid_t pid, host::Fd result) : pid_(pid), result_(std::move(result)) {}
    void end();
    pid_t pid_ = 0;
    host::Fd result_;
};

/// Index of the first of these that becomes readable until then (0: without limit); nothing if none does.
[[nodiscard]] std::optional<std::size_t> wait_for_any(const std::vector<int>& files, double until);

} // namespace affinityd::measure
