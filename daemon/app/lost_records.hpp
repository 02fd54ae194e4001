// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/log.hpp"
#include "state/journal.hpp"
#include "topology/topology.hpp"

#include <optional>
#include <string>

namespace affinityd::host {
class Root;
}

namespace affinityd::app {

/// Subjects without a record that are ours all the same. What was kept, or was granted and comes back, gets
/// the original that is known of it, or else the kernel's default.
/// After journal damage, subjects in place without a record are assumed ours: they get a record with the
/// kernel's default as their original. A pass looks at all subjects; once each could be written down, the
/// journal is whole again.
class LostRecords {
  public:
    LostRecords(const host::Root& root, state::Journal& journal, Log& log)
        : root_(root), journal_(journal), log_(log) {}

    /// The record that a subject without one ought to have, since what it is set to is from us. `policy`:
    /// that wants it now.
    [[nodiscard]] std::optional<planner::UndoRecord> recall(const machine::Subject& subject,
                                                            const machine::Setting& present,
                                                            const std::string& policy,
                                                            const topology::Topology& topology) const;
    /// Gives it that record, if it ought to have one. One that it has under a former name becomes its own.
    void take_up(const machine::Subject& subject, const machine::Setting& present, const std::string& policy,
                 const topology::Topology& topology);
    /// What a subject with a record is set to now is ours, though the kernel has set that: the record says
    /// so.
    void follow_kernel(const machine::Subject& subject, const machine::Setting& present,
                       const std::string& policy);
    [[nodiscard]] bool searching() const { return journal_.damaged(); }
    void begin_pass() { all_written_ = true; }
    /// A subject that is where its policy wants it.
    void assume_ours(const machine::Subject& subject, const machine::Setting& present,
                     const std::string& policy, const topology::Topology& topology);
    void end_pass();

  private:
    [[nodiscard]] Result<void> follow_name(const machine::Subject& subject, const machine::Setting& present,
                                           const CpuSet& online);
    [[nodiscard]] machine::Setting default_of(const machine::Subject& subject,
                                              const topology::Topology& topology) const;
    const host::Root& root_;
    state::Journal& journal_;
    Log& log_;
    std::size_t assumed_ = 0;
    bool all_written_ = true; ///< of those that the pass has come to
};

} // namespace affinityd::app
