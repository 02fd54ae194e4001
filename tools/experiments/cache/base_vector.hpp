// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "experiments/frame/supervision.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace affinityd::experiments {

/// The document's base vector: a program with a cache footprint of a given size. Its lines make one cycle in
/// an order without pattern, and where the next one is stands in each, so that neither prefetching nor
/// out-of-order execution hides that a line is not in the cache: what is lost is an upper bound.
class BaseVector {
  public:
    /// `bytes`: at least four lines. An Error: no memory. When `run` is stopped, both this and touch() return
    /// soon, with their work half done.
    [[nodiscard]] static Result<BaseVector> make(std::uint64_t bytes, const Run& run);

    /// So many lines of the cycle, from where the last walk ended.
    void walk(std::uint64_t steps);
    /// Reads every line of the first `bytes` once, one after the other, which brings them into the cache (and
    /// others out of it).
    void touch(std::uint64_t bytes, const Run& run) const;
    [[nodiscard]] std::uint64_t lines() const { return count_; }
    /// The line that the next walk begins at.
    [[nodiscard]] std::uint64_t position() const { return at_; }
    [[nodiscard]] std::uint64_t bytes() const { return count_ * sizeof(Line); }

  private:
    struct alignas(64) Line {
        std::uint64_t next; ///< index
    };
    struct Free {
        void operator()(Line* lines) const { std::free(lines); }
    };
    BaseVector(std::unique_ptr<Line[], Free> lines, std::uint64_t count)
        : lines_(std::move(lines)), count_(count) {}
    std::unique_ptr<Line[], Free> lines_;
    std::uint64_t count_ = 0, at_ = 0;
};

} // namespace affinityd::experiments
