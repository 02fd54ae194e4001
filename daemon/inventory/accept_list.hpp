// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/accept_sockets.hpp"

#include <memory>
#include <optional>
#include <vector>

namespace affinityd::inventory {

/// Reads the listeners of processes on a thread of its own. One list is read at a time; it is followed by a
/// pause of nineteen times the CPU time that it took, but of no more than four seconds. The thread is started
/// by the first ask().
class AcceptList {
  public:
    /// `root` is this machine's, and must outlive it.
    explicit AcceptList(const host::Root& root);
    AcceptList(const AcceptList&) = delete;
    AcceptList& operator=(const AcceptList&) = delete;
    /// Waits for the system call that the thread is in.
    ~AcceptList();

    /// These processes are to be read, as soon as the pause is over; who is asked for meanwhile replaces
    /// them. False: no thread is to be had.
    bool ask(std::vector<TaskId> processes);
    /// Readable when a list has come; -1 if the kernel gave no descriptor.
    [[nodiscard]] int fd() const;
    /// The list, once; no value: none has come since the last call.
    [[nodiscard]] std::optional<std::vector<AcceptSockets>> take();

  private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace affinityd::inventory
