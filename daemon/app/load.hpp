// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/log.hpp"
#include "app/work.hpp"
#include "base/error.hpp"
#include "machine/machine.hpp"
#include "planner/matcher.hpp"
#include "planner/placements.hpp"
#include "policy/policy.hpp"
#include "policy/reader.hpp"
#include "policy/settings.hpp"
#include "state/last_good.hpp"
#include "status/status.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace affinityd::app {

/// Everything that a reload replaces as one: a policy set with its matcher, the machine it is worked out on,
/// and the placements. Its parts point at each other, so it is neither copied nor moved.
class World {
  public:
    World(policy::PolicySet policies, machine::Machine machine, planner::NicUsage usage = {});
    World(const World&) = delete;
    World& operator=(const World&) = delete;

    [[nodiscard]] const policy::PolicySet& policies() const { return policies_; }
    [[nodiscard]] const policy::Policy& policy(std::size_t index) const { return policies_.policies[index]; }
    [[nodiscard]] const machine::Machine& machine() const { return machine_; }
    [[nodiscard]] const planner::Matcher& matcher() const { return matcher_; }
    [[nodiscard]] const planner::Placements& placements() const { return placements_; }
    [[nodiscard]] const planner::NicUsage& usage() const { return usage_; }

    /// The machine was read again, or other processes use other interfaces: works the placements out anew.
    void update(machine::Machine machine);
    void update(planner::NicUsage usage);
    /// Latencies were measured; they stay when the machine is read again.
    void update(machine::KnownLatencies latencies);
    /// BPF was refused, or not any more; that stays, too.
    void use_steering(bool can_steer);
    /// The time that interrupts have really taken of the CPUs that they go to since the last time: the mean
    /// of both counts. Who is not there weighs as before; a CPU that gets its first interrupt from us weighs
    /// one CPU until the next time.
    void weigh_interrupts(const std::map<unsigned, planner::Weight>& weights);
    /// True if policies place interrupts.
    [[nodiscard]] bool has_interrupts() const { return assumed_->busiest() > 0; }
    /// Policies that were released, or have no program that runs, claim no CPUs: the others place their tasks
    /// there, too.
    void use_releases(std::function<bool(std::string_view policy)> is_released);
    /// True if the policy would claim its CPUs, and does not now.
    [[nodiscard]] bool awaits_claim(std::size_t policy) const {
        return released_.contains(this->policy(policy).name);
    }
    /// A process of the policy was seen: then none may be there now, but its match is no mistake.
    void saw(std::size_t policy) { seen_.insert(this->policy(policy).name); }
    [[nodiscard]] bool has_seen(std::string_view policy) const { return seen_.contains(policy); }
    /// Other policies are released than before.
    void releases_changed();
    /// Grows with each update that gives queues other targets: whoever goes through these in slices begins
    /// again. An interface that no policy names may come and go without that.
    [[nodiscard]] std::uint64_t version() const { return version_; }
    /// True if some policy needs to know which interface serves which process.
    [[nodiscard]] bool needs_nic_usage() const;
    /// True if masks given for this policy stay when the daemon stops or the policy is removed.
    [[nodiscard]] bool keeps_on_stop(std::string_view policy) const;
    /// True if the policy was removed, and its masks stay.
    [[nodiscard]] bool keeps_after_removal(std::string_view policy) const;
    /// Takes the place of `before`: the masks of policies that are missing here stay if they said so.
    void take_over(const World& before);

  private:
    void work_out();
    void use_weights();
    policy::PolicySet policies_;
    machine::Machine machine_;
    planner::NicUsage usage_;
    planner::Matcher matcher_;
    planner::Placements placements_;
    std::shared_ptr<const planner::CpuLoad> assumed_; ///< load of interrupts, one CPU each
    std::map<unsigned, planner::Weight> weights_;     ///< of interrupts, by CPU, as measured
    std::uint64_t version_ = 0;
    std::set<std::string, std::less<>> seen_;           ///< policies with a process, now or before
    std::set<std::string, std::less<>> kept_;           ///< removed policies with on_stop: keep
    std::function<bool(std::string_view)> is_released_; ///< empty: none is
    planner::Released released_;                        ///< those that claim CPUs otherwise
};

/// The world in force. A reload puts another one in its place; who needs the old one for longer than a call
/// keeps a share of it.
struct Current {
    std::shared_ptr<World> world; ///< never null once the daemon has started
    /// Interfaces that were read again, each alone, since the last reading of the whole machine began.
    std::set<std::string, std::less<>> reread{};
    [[nodiscard]] World* operator->() const { return world.get(); }
    [[nodiscard]] const planner::Placements& placements() const { return world->placements(); }
};

/// Chooses what can be in force of the policies that were read. A file with errors does not count: in its
/// place comes its text as it was last in force, if that has none, else nothing. Where policies are at fault
/// side by side, the one that comes later in the order of policies counts as faulty. What is chosen depends
/// on the files and their last good texts only.
class GoodPolicies {
  public:
    /// `last_good` must outlive this.
    GoodPolicies(policy::ReadResult read, const std::vector<policy::Document>& documents,
                 const state::LastGood& last_good);

    /// Takes out one file at fault, or checks what is left. True: nothing is at fault.
    [[nodiscard]] bool step(const machine::Machine& machine);

    struct Result {
        policy::PolicySet set;
        std::vector<status::FileFault> faults;   ///< in order of files
        std::vector<std::string> warnings;       ///< and notes, in order of places
        std::map<std::string, std::string> good; ///< texts of policies whose files are in force
        state::LastGood::Names faulty;           ///< policies whose files are not
    };
    /// After the last step.
    [[nodiscard]] Result take();

  private:
    /// Policies that are not as they were when they were last in force.
    [[nodiscard]] std::set<std::string, std::less<>> newcomers() const;
    void begin_excluding();
    void exclude(const policy::Diagnostic& fault);
    void end_excluding();
    void take_last_good(const policy::Diagnostic& fault, status::FileFault& into);
    [[nodiscard]] policy::Diagnostic last_of(const std::vector<policy::Diagnostic>& errors) const;
    /// Indices, since thousands of files may be at fault at once.
    struct Places {
        std::unordered_map<std::string, std::size_t> policies;  ///< of the set by name, but those taken out
        std::unordered_map<std::string, std::size_t> faults;    ///< by the policy's name
        std::unordered_map<std::string, std::size_t> documents; ///< by path
    };
    Result result_;
    std::vector<policy::Document> documents_; ///< what is in force, or was to be
    std::vector<policy::Diagnostic> errors_;  ///< to be dealt with, the next one last
    std::vector<policy::Diagnostic> remarks_; ///< of reading
    std::vector<policy::Diagnostic> checked_; ///< of the last step
    Places places_;
    bool is_excluding_ = false;
    const state::LastGood& last_good_;
};

/// What a person needs to know about a file: what is wrong, and what is in force in its place.
[[nodiscard]] std::string to_string(const status::FileFault& fault);
/// file:line:column, or the file where the fault is none of a line.
[[nodiscard]] std::string place_of(const policy::Position& at);
/// What is in force in its place, as a sentence without its end.
[[nodiscard]] std::string in_its_place(const status::FileFault& fault);

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
