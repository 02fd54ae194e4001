// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "events/sources.hpp"

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

    [[nodiscard]] Result<void> add_to(sd_event* event);
    /// There is work.
    void begin();

  private:
    static int on_slice(sd_event_source* source, void* userdata);
    Work work_;
    Source source_;
};

} // namespace affinityd::events
