// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <utility>

namespace affinityd::events {

/// How long callbacks of the event loop may take, in CPU time, and which of those that take longer no machine
/// excuses. A hypervisor bills what it does to whoever runs: one callback in a daemon's life may take up to
/// four times as long. So may a few that have touched new memory (page faults): what was freed and taken back
/// by a hypervisor (free page reporting) comes again at the first touch, which takes 13 ms for 2 MiB where
/// that was measured, whoever touches it.
class CallbackLimit {
  public:
    static constexpr unsigned most_faulted = 3; ///< in a daemon's life

    explicit CallbackLimit(std::chrono::nanoseconds limit) : limit_(limit) {}

    [[nodiscard]] std::chrono::nanoseconds limit() const { return limit_; }
    [[nodiscard]] bool is_over(std::chrono::nanoseconds used) const { return used > limit_; }
    /// One that is over the limit. True: the machine is no excuse.
    [[nodiscard]] bool is_too_long(std::chrono::nanoseconds used, bool has_faulted) {
        if (used > 4 * limit_) return true;
        if (has_faulted && ++faulted_ <= most_faulted) return false;
        return std::exchange(was_long_, true);
    }

  private:
    std::chrono::nanoseconds limit_;
    bool was_long_ = false;
    unsigned faulted_ = 0;
};

} // namespace affinityd::events
