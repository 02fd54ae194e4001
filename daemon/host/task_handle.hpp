// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/fd.hpp"

namespace affinityd::host {

/// Holds on to one task, where a number may mean another one from one moment to the next: pidfd_open(2).
/// Kernels before 5.3 have none, those before 6.9 none for a thread that is not the main one.
class TaskHandle {
  public:
    enum class State {
        there, ///< it has its number, also while it waits to be collected
        gone,
        unknown, ///< there is no handle
    };
    [[nodiscard]] static TaskHandle open(int tid);
    [[nodiscard]] State state() const;

  private:
    explicit TaskHandle(Fd fd) : fd_(std::move(fd)) {}
    Fd fd_;
};

} // namespace affinityd::host
