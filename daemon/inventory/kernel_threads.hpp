// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "base/task_id.hpp"
#include "host/root.hpp"
#include "inventory/descriptors.hpp"

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace affinityd::inventory {

/// A kernel thread that works for a NIC's queue: threaded NAPI ("napi/eth0-8193") or a threaded interrupt
/// handler ("irq/24-eth0").
struct KernelThread {
    TaskId id;
    std::string comm;

    friend bool operator==(const KernelThread&, const KernelThread&) = default;
};

/// Finds these threads, in slices. The children of kthreadd (task/2/children) are a short list, but proc(5)
/// warns that a list read while children end may lack others. So it is read until two readings agree; threads
/// known before that are not in it are looked up by their own stat line before they are dropped; and where
/// the list is missing or never holds still, all processes are looked at.
class KernelThreadScan {
  public:
    /// `known`: what the scan before found. `root` must outlive the scan.
    KernelThreadScan(const host::Root& root, std::span<const KernelThread> known);

    /// True: finished. Asks `out_of_time` after every stat line.
    bool step(const std::function<bool()>& out_of_time);
    /// The threads of a finished scan, ascending by tid. An Error: processes could not be listed or read.
    [[nodiscard]] Result<std::vector<KernelThread>> take();

  private:
    [[nodiscard]] Result<bool> look_at_next();
    Result<void> look_at(int pid);
    bool begin();

    const host::Root* root_;
    std::vector<KernelThread> known_;
    bool has_begun_ = false;
    std::vector<int> children_;       ///< still to be looked at, from the back
    std::optional<PidStream> stream_; ///< used instead where there is no reliable list
    std::vector<KernelThread> found_;
    std::optional<Error> fault_;
};

/// The same in one go.
[[nodiscard]] Result<std::vector<KernelThread>> find_kernel_threads(const host::Root& root,
                                                                    std::span<const KernelThread> known = {});

} // namespace affinityd::inventory
