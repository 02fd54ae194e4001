// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/root.hpp"
#include "machine/machine.hpp"
#include "policy/reader.hpp"
#include "policy/settings.hpp"
#include "status/status.hpp"
#include "world/world.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace affinityd::core {

using policy::Settings;

/// Tells files apart by path: device, inode, time of the last change in ns, size; of folders, device and
/// inode.
using FileStamps = std::map<std::string, std::array<std::uint64_t, 4>>;
using Texts = std::map<std::string, std::string, std::less<>>; ///< of policies, by name

/// A policy on trial: comes after all files, and so overrides one of its name, always gives back, and is
/// never kept as the last good version of that file.
struct Overlay {
    policy::Document document;
    bool is_only_watched = false; ///< its programs are matched, and not placed
};

/// The policies that can be in force, of those that were read.
struct Loaded {
    FileStamps stamps;                     ///< of the files as they were when reading began
    std::string refused;                   ///< why nothing of it counts; "": it does
    std::shared_ptr<World> world;          ///< null where it is refused
    std::vector<status::FileFault> faults; ///< in order of files
    std::vector<std::string> warnings;     ///< and notes, in order of places
    Texts good;                            ///< in force, and the last good ones of those that are faulty
    Names faulty;                          ///< policies whose files are not in force
    std::string unkept;                    ///< why `good` is not kept for the next start; "": it is
};

/// Reads settings and policies, and keeps the outcome with its faults.
///
/// A policy's file with errors does not count: in its place comes the text that was in force last, of which a
/// copy is kept for the next start; if that has none, nothing. Where policies are at fault side by side, the
/// one that comes later in the order of policies counts as faulty. The choice depends on the files and their
/// copies only, so that a start and a reload agree.
class Loading {
  public:
    /// `acts`: something is changed because of what is read, so that only root may have written it.
    Loading(const host::Root& root, const Settings& settings, bool acts);

    /// Begins to read the policies for this machine, in a thread: its end waits for that. With the newest
    /// latencies from the measurement history, where a policy says `measured`, and with policies on trial.
    /// `is_only_checked`: nothing of it comes into force, so no copies are written.
    [[nodiscard]] std::future<Loaded> begin(machine::Machine machine, planner::NicUsage usage,
                                            std::vector<Overlay> trials = {},
                                            bool is_only_checked = false) const;
    /// Ends it, with the faults of other files. An Error: nothing of it counts.
    [[nodiscard]] Result<std::shared_ptr<World>> end(Loaded loaded,
                                                     std::vector<status::FileFault> others = {});

    /// True if the files are others than those that were read last: made, removed, written, or behind links
    /// that lead elsewhere. Not as long as one was written less than a second ago, as more may follow; but
    /// two seconds after the first call that saw a change at the latest.
    [[nodiscard]] bool has_changed();
    /// True if the file was in a folder of policies at the reading before the last.
    [[nodiscard]] bool was_listed(const std::string& file) const { return before_.contains(file); }
    /// True if the file has not been written between the last two readings.
    [[nodiscard]] bool is_as_before(const std::string& file) const;

    [[nodiscard]] const status::LoadStatus& status() const { return status_; }
    /// Policies whose files do not count.
    [[nodiscard]] const Names& faulty() const { return faulty_; }
    /// Says what is wrong with files, and what is in force in their place; "": nothing is wrong.
    [[nodiscard]] std::string report() const;
    /// Warnings and notes of the last reading that the one before had not.
    [[nodiscard]] const std::string& warnings() const { return warnings_; }
    /// Says why good policies could not be kept for the next start; "": they are.
    [[nodiscard]] const std::string& unkept() const { return unkept_; }
    [[nodiscard]] std::vector<planner::Problem> problems() const;

  private:
    const host::Root& root_;
    std::vector<std::string> folders_;
    std::string copies_;    ///< the folder of copies; "": none are kept
    std::string state_dir_; ///< of the measurement history
    bool is_trusting_;
    Texts good_;                                                   ///< as Loaded::good
    FileStamps stamps_, before_;                                   ///< of the last reading and the one before
    std::optional<std::chrono::steady_clock::time_point> changed_; ///< since then, as far as was seen
    status::LoadStatus status_;
    Names faulty_;
    std::string unkept_;         ///< as Loaded::unkept
    std::set<std::string> told_; ///< warnings and notes of the last reading
    std::string warnings_;       ///< those of them that are new
};

using ReadSettings = std::function<Result<Settings>()>;
/// Reads affinityd.yaml(5) anew, if `read` is there; with an error in it, `settings` are unchanged.
[[nodiscard]] std::vector<status::FileFault> reread(const ReadSettings& read, Settings& settings);

/// Says what is wrong with files, in a few words; "": nothing.
[[nodiscard]] std::string summary_of(const status::LoadStatus& load);

} // namespace affinityd::core
