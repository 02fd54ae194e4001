// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/job.hpp"
#include "app/listeners.hpp"

#include <optional>

namespace affinityd::app {

/// Puts all listeners right, in slices, after a plan was made.
class ListenerRound final : public Job {
  public:
    explicit ListenerRound(Listeners& listeners) : listeners_(listeners) {}
    bool step(const OutOfTime& out_of_time) override;

  private:
    Listeners& listeners_;
    bool is_begun_ = false;
    std::optional<ListenerRecords::Sorted> rest_; ///< no value: targets first
};

} // namespace affinityd::app
