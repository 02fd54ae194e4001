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

/// Whose policies are read.
enum class Owners {
    trusted, ///< only those that nobody but root and this process's own user can have written
    all,     ///< anybody's: nothing is changed because of them
};

/// Reads the policies of some folders for a machine, one file at a time.
class WorldLoader {
  public:
    /// `by_whom`: of these policies, whose are good enough.
    WorldLoader(std::vector<std::string> folders, machine::Machine machine, planner::NicUsage usage,
                Owners by_whom = Owners::trusted)
        : folders_(std::move(folders)), machine_(std::move(machine)), usage_(std::move(usage)),
          by_whom_(by_whom) {}

    /// True: take() has the result.
    [[nodiscard]] bool step(const OutOfTime& out_of_time);
    /// An Error, with all diagnostics in its message: there is no good set.
    [[nodiscard]] Result<LoadedWorld> take() { return std::move(*result_); }

  private:
    [[nodiscard]] Result<LoadedWorld> finish();
    [[nodiscard]] Result<std::vector<policy::Document>> read() const;
    std::vector<std::string> folders_;
    machine::Machine machine_;
    planner::NicUsage usage_;
    Owners by_whom_;
    std::optional<policy::PolicyReading> reading_;
    std::optional<Result<LoadedWorld>> result_;
};

} // namespace affinityd::app
