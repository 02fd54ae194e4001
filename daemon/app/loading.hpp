// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/log.hpp"
#include "app/world_loader.hpp"
#include "policy/settings.hpp"
#include "state/last_good.hpp"
#include "status/status.hpp"

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::app {

using policy::Settings;

/// What came of reading settings and policies. Faults are told in the log and kept for status; texts of
/// policies that are in force are kept for when their files have errors.
class Loading {
  public:
    /// `acts`: something is changed because of what is read, so that not everybody may have written it.
    Loading(const Settings& settings, bool acts, Log& log);

    /// Begins to read the policies; this must outlive the reading.
    [[nodiscard]] std::shared_ptr<WorldLoader> begin(machine::Machine machine, planner::NicUsage usage) const;
    /// Ends it, with the faults of other files. An Error: nothing of it counts.
    [[nodiscard]] Result<std::shared_ptr<World>> end(WorldLoader& loader,
                                                     std::vector<status::FileFault> others = {});

    /// True if the files are others than those that were read last: made, removed, written, or behind links
    /// that lead elsewhere. Not as long as one was written less than a second ago: more may follow.
    [[nodiscard]] bool has_changed() const;

    [[nodiscard]] const status::LoadStatus& status() const { return status_; }
    /// Policies whose files do not count.
    [[nodiscard]] const state::LastGood::Names& faulty() const { return faulty_; }
    /// What is wrong with files, and what is in force in their place; "": nothing is wrong.
    [[nodiscard]] std::string report() const;
    /// Warnings and notes of the last reading that the one before had not.
    [[nodiscard]] const std::string& warnings() const { return warnings_; }
    [[nodiscard]] std::vector<planner::Problem> problems() const;
    /// Keeps texts for the next start, also again where that failed. True: for now that is all.
    [[nodiscard]] bool keep(const OutOfTime& out_of_time);

  private:
    std::vector<std::string> folders_;
    bool acts_;
    Log& log_;
    state::LastGood last_good_;
    FileStamps stamps_; ///< of what was read last
    status::LoadStatus status_;
    state::LastGood::Names faulty_;
    std::set<std::string> told_; ///< warnings and notes of the last reading
    std::string warnings_;       ///< those of them that are new
    std::string unkept_;         ///< why texts are not kept for the next start; ""
};

using ReadSettings = std::function<Result<Settings>()>;
/// Reads affinityd.yaml(5) anew, if there is somebody who reads it; with an error in it, `settings` are
/// unchanged.
[[nodiscard]] std::vector<status::FileFault> reread(const ReadSettings& read, Settings& settings);

/// What is wrong with files, in a few words; "": nothing.
[[nodiscard]] std::string summary_of(const status::LoadStatus& load);

} // namespace affinityd::app
