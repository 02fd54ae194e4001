// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/job.hpp"
#include "app/listeners.hpp"

#include <memory>

namespace affinityd::app {

/// Rounds over all listeners, each of which puts them right, in slices, after a plan was made. The one of a
/// pass and the one after a plan would take turns, and each that ends forgets what was not seen in it: so
/// only one is under way, and others wait for its end.
class ListenerRounds {
  public:
    /// `listeners` must outlive it; a round is not to be stepped after it.
    explicit ListenerRounds(Listeners& listeners) : listeners_(listeners) {}

    [[nodiscard]] std::unique_ptr<Job> next();
    /// One has not begun yet: it sees whatever is planned by then.
    [[nodiscard]] bool does_one_wait() const { return !waiting_.expired(); }

  private:
    /// A round has it until it ends.
    using Place = std::shared_ptr<const int>;
    class Round;
    [[nodiscard]] bool begin(const Place& place);

    Listeners& listeners_;
    std::weak_ptr<const int> waiting_, under_way_;
};

} // namespace affinityd::app
