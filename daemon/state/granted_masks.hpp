// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "machine/subject.hpp"

#include <cstddef>
#include <cstdint>
#include <unordered_set>

namespace affinityd::state {

/// Pairs of subject and mask that this daemon has given out, each as a hash: a program may set again a mask
/// that it read earlier, and that is no choice of its own. In memory only. At most `most` of each kind are
/// known; the older half is dropped at once.
class GrantedMasks {
  public:
    static constexpr std::size_t most = 131072;

    /// Before the subject is given the mask.
    void note(const machine::Subject& subject, const machine::Setting& setting);
    [[nodiscard]] bool contains(const machine::Subject& subject, const machine::Setting& setting) const;
    /// The subject is gone, or refused the mask.
    void forget(const machine::Subject& subject, const machine::Setting& setting);

  private:
    struct Hashes {
        std::unordered_set<std::uint64_t> young, old;
    };
    Hashes tasks_, queues_; ///< bounded apart, so that a crowd of tasks does not push interrupts out
};

} // namespace affinityd::state
