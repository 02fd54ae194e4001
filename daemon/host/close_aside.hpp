// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/fd.hpp"

#include <atomic>
#include <memory>

namespace affinityd::host {

/// Closes what may take as long as somebody else likes, such as a connection that lingers: each by a thread
/// of its own, so that nobody waits for it. That a connection lingers is not waited for either, but for a
/// tenth of a second: those of one user leave room for others soon.
class CloseAside {
  public:
    void close(Fd fd);
    /// How many are not closed yet. Whoever takes more in should have a limit for it.
    [[nodiscard]] int waiting() const { return *waiting_; }

  private:
    std::shared_ptr<std::atomic<int>> waiting_ = std::make_shared<std::atomic<int>>(0);
};

} // namespace affinityd::host
