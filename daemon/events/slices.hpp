// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "events/deferred.hpp"

#include <functional>

namespace affinityd::events {

/// Runs long work in slices at idle priority, so that no event waits behind more than one of them.
class Slices {
  public:
    struct Work {
        /// Works until `out_of_time` says so. True: there is nothing left to do.
        std::function<bool(const std::function<bool()>& out_of_time)> step;
        /// A process waits to be placed: the slice ends sooner.
        std::function<bool()> is_wanted;
        std::function<void()> done; ///< called when step() has returned true
    };
    explicit Slices(Work work) : work_(std::move(work)) {}
    Slices(const Slices&) = delete;
    Slices& operator=(const Slices&) = delete;

    void add_to(sd_event* event) { next_.add_to(event, SD_EVENT_PRIORITY_IDLE); }
    /// There is work.
    void begin() { next_.arm(); }

  private:
    void slice();
    Work work_;
    Deferred next_{[this] { slice(); }};
};

} // namespace affinityd::events
