// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/fd.hpp"

#include <cstdint>
#include <expected>
#include <optional>
#include <string>

namespace affinityd::experiments {

/// Reads of the first-level data cache by one thread in user mode, and those that missed it.
struct CacheReads {
    std::uint64_t reads = 0, misses = 0;
    /// Part of the reads that missed; no value without reads.
    [[nodiscard]] std::optional<double> miss_rate() const {
        if (reads == 0) return std::nullopt;
        return static_cast<double>(misses) / static_cast<double>(reads);
    }
    CacheReads& operator+=(const CacheReads& other) {
        reads += other.reads;
        misses += other.misses;
        return *this;
    }
};

/// Counts them of the thread that opens it, from then on, where the machine has such counters and lets this
/// program have them. Source: perf_event_open(2).
class MissCounter {
  public:
    /// The error says why not, in words: "no hardware counters here: ...".
    [[nodiscard]] static std::expected<MissCounter, std::string> open();
    /// What was counted until now, scaled up if the hardware was shared. No value: it was counted at no time.
    [[nodiscard]] std::optional<CacheReads> read() const;

  private:
    MissCounter(host::Fd reads, host::Fd misses) : reads_(std::move(reads)), misses_(std::move(misses)) {}
    host::Fd reads_, misses_;
};

} // namespace affinityd::experiments
