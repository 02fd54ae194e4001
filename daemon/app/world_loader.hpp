// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/job.hpp"
#include "app/world.hpp"
#include "base/error.hpp"
#include "policy/reader.hpp"

#include <optional>
#include <string>
#include <vector>

namespace affinityd::app {

/// A world that was read whole, and what the policies' author should know about them.
struct LoadedWorld {
    std::shared_ptr<World> world;
    std::string diagnostics; ///< warnings and notes, a line each; "": there are none
};

/// Reads the policies of some folders for a machine, one file at a time.
class WorldLoader {
  public:
    WorldLoader(std::vector<std::string> folders, machine::Machine machine, planner::NicUsage usage)
        : folders_(std::move(folders)), machine_(std::move(machine)), usage_(std::move(usage)) {}

    /// True: take() has the result.
    [[nodiscard]] bool step(const OutOfTime& out_of_time);
    /// An Error, with all diagnostics in its message: there is no good set.
    [[nodiscard]] Result<LoadedWorld> take() { return std::move(*result_); }

  private:
    [[nodiscard]] Result<LoadedWorld> finish();
    std::vector<std::string> folders_;
    machine::Machine machine_;
    planner::NicUsage usage_;
    std::optional<policy::PolicyReading> reading_;
    std::optional<Result<LoadedWorld>> result_;
};

} // namespace affinityd::app
