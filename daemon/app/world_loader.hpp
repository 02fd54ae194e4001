// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/good_policies.hpp"
#include "app/job.hpp"
#include "app/world.hpp"
#include "base/error.hpp"
#include "policy/reader.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::app {

/// A world of the policies that can be in force, and what their author should know about them. In `found`,
/// the set has moved into the world.
struct LoadedWorld {
    std::shared_ptr<World> world;
    GoodPolicies::Result found;
};

/// Tells files apart by path: device, inode, time of the last change in ns, size; of folders, device and
/// inode.
using FileStamps = std::map<std::string, std::array<std::uint64_t, 4>>;
/// Stamps of the folders and the policy files in them, links followed; missing ones have none.
[[nodiscard]] FileStamps stamps_of(const std::vector<std::string>& folders);

/// Whose policies are read.
enum class Owners {
    trusted, ///< only those that nobody but root and this process's own user can have written
    all,     ///< anybody's: nothing is changed because of them
};

/// Reads the policies of some folders for a machine, one file at a time.
class WorldLoader {
  public:
    /// `by_whom`: of these policies, whose are good enough. `last_good` must outlive this.
    WorldLoader(std::vector<std::string> folders, machine::Machine machine, planner::NicUsage usage,
                const state::LastGood& last_good, Owners by_whom = Owners::trusted)
        : folders_(std::move(folders)), machine_(std::move(machine)), usage_(std::move(usage)),
          last_good_(last_good), by_whom_(by_whom) {}

    /// True: take() has the result.
    [[nodiscard]] bool step(const OutOfTime& out_of_time);
    /// An Error: a folder cannot be read, or is not to be trusted. Files with errors are left out.
    [[nodiscard]] Result<LoadedWorld> take() { return std::move(*result_); }
    /// Stamps of the files as they were when reading began.
    [[nodiscard]] const FileStamps& stamps() const { return stamps_; }

  private:
    /// Where files come and go all the time, the last list is good enough.
    static constexpr unsigned most_lists = 4;
    [[nodiscard]] LoadedWorld finish();
    [[nodiscard]] Result<std::vector<std::string>> list() const;
    /// No value: it was removed since it was listed.
    [[nodiscard]] std::optional<policy::Document> read(const std::string& path) const;
    [[nodiscard]] bool read_files(const OutOfTime& out_of_time);
    std::vector<std::string> folders_;
    machine::Machine machine_;
    planner::NicUsage usage_;
    const state::LastGood& last_good_;
    Owners by_whom_;
    FileStamps stamps_;
    std::optional<std::vector<std::string>> paths_; ///< of the files
    std::size_t next_path_ = 0;
    unsigned listed_ = 0;                     ///< how often
    std::vector<policy::Document> documents_; ///< those that have been read
    std::optional<policy::PolicyReading> reading_;
    std::optional<GoodPolicies> choice_;
    std::optional<Result<LoadedWorld>> result_;
};

} // namespace affinityd::app
