// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accounting/measurements.hpp"
#include "base/error.hpp"
#include "machine/subject.hpp"

#include <cstddef>
#include <map>
#include <string>

namespace affinityd::status {

/// How many subjects of each kind.
struct SubjectCounts {
    std::size_t threads = 0;
    std::size_t interrupts = 0;
    std::size_t steering = 0; ///< maps and flow tables of queues
    std::size_t units = 0;

    void add(const machine::Subject& subject);
    SubjectCounts& operator+=(const SubjectCounts& other);
    [[nodiscard]] std::size_t sum() const { return threads + interrupts + steering + units; }
    [[nodiscard]] bool any() const { return sum() > 0; }
    friend bool operator==(const SubjectCounts&, const SubjectCounts&) = default;
};

/// "3 threads, 2 interrupts"; "" for none.
[[nodiscard]] std::string to_string(const SubjectCounts& counts);

/// The work of a command for one policy.
struct PolicyChanges {
    SubjectCounts placed;     ///< set to what the policy wants
    SubjectCounts in_place;   ///< were so already
    SubjectCounts put_back;   ///< got their originals
    std::size_t kept_off = 0; ///< tasks of others that were moved off its exclusive CPUs
    std::size_t left = 0;     ///< keep what another program has set them to, instead of their originals
    std::size_t put_off = 0;  ///< not asked for now: fought over, outside its cpuset, can never be moved
    std::size_t refused = 0;  ///< could not be placed
    std::size_t not_put_back = 0;
    std::string reason; ///< of the first of these two; ""

    /// Something was changed, or should have been.
    [[nodiscard]] bool is_worth_telling() const {
        return placed.any() || put_back.any() || kept_off + left + put_off + refused + not_put_back > 0;
    }
};

/// "3 threads, 2 interrupts placed; 14 threads were in place already"; in a dry run "would be placed".
[[nodiscard]] std::string to_string(const PolicyChanges& changes, bool is_dry_run = false);

/// The work of a command: the answer to its sender.
struct Changes {
    std::string headline;                                       ///< "reloaded: 4 policies"; ""
    bool is_dry_run = false;                                    ///< it was not done: this is what would be
    std::map<std::string, PolicyChanges, std::less<>> policies; ///< by name
    std::string if_none;                                        ///< said where there was nothing to be done
    std::string note;                                           ///< what else there is to know; ""

    /// False: something was refused, or could not be put back.
    [[nodiscard]] bool is_ok() const;
    [[nodiscard]] SubjectCounts put_back() const; ///< of all policies
};

/// For a person: a line for each policy for which something was done.
[[nodiscard]] std::string message_of(const Changes& changes);
/// As a JSON text, as affinityctl-json(5) documents it.
[[nodiscard]] std::string to_text(const Changes& changes);
/// The same of what concerns no policy by name: a message alone.
[[nodiscard]] std::string message_text(const std::string& message);

/// Says what a measurement that was asked for has shown, or why there is no result.
[[nodiscard]] Result<std::string> to_answer(const accounting::MeasurementReport& report);

} // namespace affinityd::status
