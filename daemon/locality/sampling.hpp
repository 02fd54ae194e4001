// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/reading_thread.hpp"
#include "locality/read_counts.hpp"
#include "locality/sampler.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace affinityd::locality {

/// Samples sockets on a thread of its own.
class Sampling {
  public:
    using Groups = std::vector<std::vector<int>>; ///< of processes that share `most`
    struct Asked {
        Groups awaited;           ///< looked at first, and without a pause
        Groups groups;            ///< nobody waits for these: see Pace
        std::size_t most = 0;     ///< sockets of a group that are looked at
        std::uint64_t number = 0; ///< of the question
    };
    struct Found {
        ReadCounts counts;
        int refused = 0;          ///< errno of a socket that could not be had this time; 0: none
        std::uint64_t number = 0; ///< of the question that this answers
    };
    /// `root` is this machine's, and must outlive it.
    explicit Sampling(const host::Root& root);

    /// One look at these; see ReadingThread.
    bool ask(Asked asked) { return thread_.ask(std::move(asked)); }
    [[nodiscard]] int fd() const { return thread_.fd(); }
    [[nodiscard]] std::optional<Found> take() { return thread_.take(); }

  private:
    [[nodiscard]] Found read(const Asked& asked, const std::stop_token& stop);
    void look(const Groups& groups, std::size_t most, const Sampler::GoesOn& goes_on);
    Sampler sampler_; ///< the thread's
    std::size_t round_ = 0;
    inventory::ReadingThread<Asked, Found> thread_;
};

} // namespace affinityd::locality
