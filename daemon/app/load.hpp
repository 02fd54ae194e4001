// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/log.hpp"
#include "app/work.hpp"
#include "base/error.hpp"
#include "base/task_id.hpp"
#include "enforcer/executor.hpp"
#include "host/root.hpp"
#include "machine/machine.hpp"
#include "planner/affinity_choice.hpp"
#include "planner/matcher.hpp"
#include "planner/placements.hpp"
#include "policy/policy.hpp"
#include "policy/reader.hpp"
#include "policy/settings.hpp"
#include "status/status.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace affinityd::app {

using Names = std::set<std::string, std::less<>>; ///< of policies

/// Policies and processes that were told to let go until the next `apply`, or reload that was asked for. A
/// process is known by its identity: a later one of the same number is not released.
class Releases {
  public:
    void release_policy(std::string name) { policies_.insert(std::move(name)); }
    void release_process(const TaskId& id) { processes_.insert(id); }
    void clear() { *this = {}; }
    /// These policies stay released if they are; no other does.
    void keep_policies(const Names& names) {
        Names kept;
        for (const auto& name : names)
            if (policy(name)) kept.insert(name);
        policies_ = std::move(kept);
    }
    void clear_processes() { processes_.clear(); }
    /// The process has ended.
    void forget(const TaskId& id) { processes_.erase(id); }

    /// The daemon ends: whatever the policies say, nothing is wanted any more.
    void release_all() { all_ = true; }
    [[nodiscard]] bool all() const { return all_; }
    [[nodiscard]] bool policy(std::string_view name) const { return all_ || policies_.contains(name); }
    [[nodiscard]] bool process(const TaskId& id) const { return processes_.contains(id); }
    [[nodiscard]] const std::unordered_set<TaskId>& processes() const { return processes_; }
    /// True if this process, which that policy wants, is to be let go.
    [[nodiscard]] bool covers(std::string_view policy_name, const TaskId& id) const {
        return !empty() && (policy(policy_name) || process(id));
    }
    [[nodiscard]] bool empty() const { return !all_ && policies_.empty() && processes_.empty(); }

  private:
    bool all_ = false;
    Names policies_;
    std::unordered_set<TaskId> processes_;
};

using policy::Settings;

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
    /// The choices of policies with `affinity: auto`, by name; without one nothing is placed.
    using Choices = std::map<std::string, planner::AutoCandidate, std::less<>>;
    void use_choices(const Choices& choices);
    /// As its file says, whatever the choice.
    [[nodiscard]] policy::Steer steer_of(const policy::Policy& policy) const {
        return steers_[static_cast<std::size_t>(&policy - policies_.policies.data())];
    }
    /// The time that interrupts have really taken, by CPU. One without a count weighs one CPU.
    void weigh_interrupts(std::map<unsigned, planner::Weight> weights);
    /// True if policies place interrupts.
    [[nodiscard]] bool has_interrupts() const { return assumed_->busiest() > 0; }
    /// Policies that were released, or have no program that runs, claim no CPUs: the others place their tasks
    /// there, too.
    void update(planner::Released released);
    /// True if the policy would claim its CPUs, and does not now.
    [[nodiscard]] bool awaits_claim(std::size_t policy) const {
        return released_.contains(this->policy(policy).name);
    }
    /// A process of the policy was seen: then none may be there now, but its match is no mistake.
    void saw(std::size_t policy) { seen_.insert(this->policy(policy).name); }
    [[nodiscard]] bool has_seen(std::string_view policy) const { return seen_.contains(policy); }
    /// Grows with each update that gives queues other targets: a round through these in slices begins
    /// again. An interface that no policy names may come and go without that.
    [[nodiscard]] std::uint64_t version() const { return version_; }
    /// True if some policy needs to know which interface serves which process.
    [[nodiscard]] bool needs_nic_usage() const;
    /// True if masks given for this policy stay when the daemon stops or the policy is removed.
    [[nodiscard]] bool keeps_on_stop(std::string_view policy) const;
    /// True if the policy was removed, and its masks stay.
    [[nodiscard]] bool keeps_after_removal(std::string_view policy) const;
    /// Takes the place of `before`, with choices and claims of now: the masks of policies that are missing
    /// here stay if they said so.
    void take_over(const World& before, const Choices& choices, planner::Released released);

  private:
    bool choose(const Choices& choices);
    void work_out();
    void use_weights();
    policy::PolicySet policies_;
    std::vector<policy::Steer> steers_; ///< of the policies, as their files say
    machine::Machine machine_;
    planner::NicUsage usage_;
    planner::Matcher matcher_;
    planner::Placements placements_;
    std::shared_ptr<const planner::CpuLoad> assumed_; ///< load of interrupts, one CPU each
    std::map<unsigned, planner::Weight> weights_;     ///< of interrupts, by CPU, as measured
    std::uint64_t version_ = 0;
    std::set<std::string, std::less<>> seen_; ///< policies with a process, now or before
    std::set<std::string, std::less<>> kept_; ///< removed policies with on_stop: keep
    planner::Released released_;              ///< those that claim CPUs otherwise
};

/// The world in force. A reload puts another one in its place; a user of the old one for longer than a call
/// keeps a share of it.
struct Current {
    std::shared_ptr<World> world; ///< never null once the daemon has started
    [[nodiscard]] World* operator->() const { return world.get(); }
    [[nodiscard]] const planner::Placements& placements() const { return world->placements(); }
};

/// All parts of the daemon work on this.
struct Shared {
    const host::Root& root;
    enforcer::Enforcer& enforcer;
    Log& log;
    Settings settings;
    enforcer::Executor executor;
    Current current{};
    Releases releases{};
    Work work{};
    [[nodiscard]] bool acts() const { return enforcer.acts(); } ///< false: a dry run
    [[nodiscard]] state::Journal& journal() { return executor.journal(); }
    [[nodiscard]] const state::Journal& journal() const { return executor.journal(); }
    /// True if a policy was removed, and its masks stay, and were not released by hand.
    [[nodiscard]] bool keeps(std::string_view policy) const {
        return current->keeps_after_removal(policy) && !releases.policy(policy);
    }
    void want_pass() { work.want(Work::Urgency::soon); }
    /// Logs that the undo journal could not be written. True: it was.
    bool report(const auto& written) {
        if (!written) log.error(written.error().to_string());
        return written.has_value();
    }
};

/// Tells files apart by path: device, inode, time of the last change in ns, size; of folders, device and
/// inode.
using FileStamps = std::map<std::string, std::array<std::uint64_t, 4>>;
using Texts = std::map<std::string, std::string, std::less<>>; ///< of policies, by name

/// A policy on trial. It comes after all files, and so overrides one of its name; it always gives back, and
/// is never kept as the last good version of that file.
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

/// Reads settings and policies, and keeps the outcome. Faults are told in the log and kept for status.
///
/// A policy's file with errors does not count: in its place comes the text that was in force last, of which a
/// copy is kept for the next start; if that has none, nothing. Where policies are at fault side by side, the
/// one that comes later in the order of policies counts as faulty. The choice depends on the files and their
/// copies only, so that a start and a reload agree.
class Loading {
  public:
    /// `acts`: something is changed because of what is read, so that only root may have written it.
    Loading(const host::Root& root, const Settings& settings, bool acts, Log& log);

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
    /// True if the file has not been written between the last two readings.
    [[nodiscard]] bool is_as_before(const std::string& file) const;

    [[nodiscard]] const status::LoadStatus& status() const { return status_; }
    /// Policies whose files do not count.
    [[nodiscard]] const Names& faulty() const { return faulty_; }
    /// Says what is wrong with files, and what is in force in their place; "": nothing is wrong.
    [[nodiscard]] std::string report() const;
    /// Warnings and notes of the last reading that the one before had not.
    [[nodiscard]] const std::string& warnings() const { return warnings_; }
    [[nodiscard]] std::vector<planner::Problem> problems() const;

  private:
    const host::Root& root_;
    std::vector<std::string> folders_;
    std::string copies_;    ///< the folder of copies; "": none are kept
    std::string state_dir_; ///< of the measurement history
    bool acts_;
    Log& log_;
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

} // namespace affinityd::app
