// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/fd.hpp"

#include <memory>

namespace affinityd::host {

/// Closes what may take as long as somebody else likes, such as a connection that lingers: by a thread, and
/// by another one when that takes long, so that nobody waits for it. Threads that have nothing to close for a
/// second end.
class CloseAside {
  public:
    CloseAside();
    CloseAside(const CloseAside&) = delete;
    CloseAside& operator=(const CloseAside&) = delete;
    /// What is not closed yet will be.
    ~CloseAside();

    void close(Fd fd);
    /// How many are not closed yet. Whoever takes more in should have a limit for it: there may be as many
    /// threads.
    [[nodiscard]] int waiting() const;

  private:
    struct Work;
    static void close_all(const std::shared_ptr<Work>& work);
    std::shared_ptr<Work> work_; ///< the threads have it, too
};

} // namespace affinityd::host
