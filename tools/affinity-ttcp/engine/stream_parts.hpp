// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/engine/stream.hpp"

#include <cstddef>

namespace affinityd::ttcp {

/// What transmit() and receive() have in common.

/// Page-aligned, filled with ttcp's pattern, and touched before the clock runs.
class Buffer {
  public:
    explicit Buffer(std::size_t size);
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer();
    [[nodiscard]] char* data() const { return data_; } ///< nullptr: no memory

  private:
    char* data_ = nullptr;
    std::size_t size_;
};

/// Waits without progress, looking at the link once a second: TCP goes on trying when its interface has gone.
class Patience {
  public:
    /// `option`: SO_SNDTIMEO or SO_RCVTIMEO, set so that a call on the socket returns in time.
    Patience(int socket, int option, const Load& load);
    /// After a wait that brought no progress: 0 to go on, else the errno value to end with.
    [[nodiscard]] int wait_is_over();
    void progress() { waited_ = 0; }

  private:
    [[nodiscard]] double look_seconds() const;
    int socket_;
    const Load& load_;
    double waited_ = 0;
};

/// Tells a peer that sends a byte now and then from one that sends.
class Pace {
  public:
    explicit Pace(const Load& load) : load_(load) {}
    /// `bytes`: received in all, `now`: CLOCK_MONOTONIC seconds. False: too few in the last `stall_seconds`.
    [[nodiscard]] bool is_kept(std::uint64_t bytes, double now);

  private:
    const Load& load_;
    double since_ = 0;
    std::uint64_t before_ = 0;
};

/// Sends all of it: 0, or errno; `sent` counts what went out in both cases. Never raises SIGPIPE.
[[nodiscard]] int send_all(int socket, const char* data, std::size_t length, Patience& patience,
                           std::uint64_t& sent);

void fault(StreamUse& use, End end, int code);
/// The same with the End that belongs to an errno value.
void fault(StreamUse& use, int code);

[[nodiscard]] bool is_full(const Load& load, const StreamUse& use);
[[nodiscard]] std::size_t next_length(const Load& load, const StreamUse& use);
/// Stops the clock and the meter.
StreamUse& finish(StreamUse& use, int socket, Meter& meter);

} // namespace affinityd::ttcp
