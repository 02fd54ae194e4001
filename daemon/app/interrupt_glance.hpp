// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/job.hpp"
#include "app/queues.hpp"

#include <functional>
#include <memory>

namespace affinityd::app {

/// One look at the masks of the interrupts under policy, and at nothing else: no kernel event tells that
/// somebody has written one. It costs a file per interrupt, so it may be taken every few seconds.
class InterruptGlance final : public Job {
  public:
    /// `found` is called at the end if any had been changed; they are right again then.
    InterruptGlance(Queues& queues, std::function<void()> found)
        : queues_(queues), found_(std::move(found)), world_(queues.current().world),
          version_(world_->version()) {}
    bool step(const OutOfTime& out_of_time) override;

  private:
    Queues& queues_;
    std::function<void()> found_;
    std::shared_ptr<World> world_; ///< with other policies or placements than these,
    std::uint64_t version_;        ///< a round over all queues is on its way
    std::size_t next_ = 0;         ///< target
    bool has_found_ = false;
};

} // namespace affinityd::app
