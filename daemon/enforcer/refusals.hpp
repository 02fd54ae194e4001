// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "enforcer/bounded_map.hpp"
#include "enforcer/enforcer.hpp"

#include <cstdint>
#include <string>

namespace affinityd::enforcer {

/// A change that was asked for and not made.
struct Refusal {
    Outcome outcome = Outcome::failed;
    int code = 0; ///< errno, 0 if there was none
    machine::Setting wanted;
    std::uint64_t since = 0; ///< the pass in which it was first refused, or after which
    bool is_told = false;
};

/// "failed: Input/output error"
[[nodiscard]] std::string to_string(const Refusal& refusal);

/// The last refusal of each subject that is still refused, for status, and the interrupts that can never
/// move. Of the former there are at most `most_shown`, of the latter at most `most_permanent`; the oldest
/// makes room.
class Refusals {
  public:
    static constexpr std::size_t most_shown = 1000;
    static constexpr std::size_t most_permanent = 16384;

    /// True if this is to be told: the subject was not refused before, or for another reason. When CPUs,
    /// cpusets or interfaces change, a mask may have no CPU for a moment, or a line no handler (EINVAL, EIO):
    /// what the next pass mends anyway is not told, but what that pass is refused, too. `expects_changes`:
    /// such a change was announced, and no pass has dealt with it yet.
    bool add(const machine::Subject& subject, Refusal refusal, bool expects_changes = false);
    void begin_pass() { ++passes_; }
    /// Also those that can never move: an operator asked for it, and a line that was being reset looks the
    /// same.
    void try_all_again() { permanent_.clear(); }
    /// The subject has moved after all, or is gone.
    void erase(const machine::Subject& subject);
    [[nodiscard]] bool is_permanent(const machine::Subject& subject) const {
        return permanent_.contains(subject);
    }
    [[nodiscard]] const Refusal* find(const machine::Subject& subject) const { return shown_.find(subject); }

    /// Subject and refusal, the oldest first.
    [[nodiscard]] const BoundedMap<Refusal>::Entries& entries() const { return shown_.entries(); }
    [[nodiscard]] std::size_t size() const { return shown_.size(); }
    [[nodiscard]] bool empty() const { return shown_.empty(); }

    /// The next subject to be looked at; the one after it comes with the next call. There must be one.
    [[nodiscard]] machine::Subject rotate();

  private:
    struct Nothing {};
    BoundedMap<Refusal> shown_{most_shown};
    BoundedMap<Nothing> permanent_{most_permanent};
    std::uint64_t passes_ = 0;
};

} // namespace affinityd::enforcer
