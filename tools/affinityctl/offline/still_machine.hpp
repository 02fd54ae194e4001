// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/root.hpp"
#include "inventory/process_scan.hpp"
#include "machine/machine.hpp"
#include "planner/assignments.hpp"
#include "planner/matcher.hpp"
#include "planner/plan.hpp"
#include "policy/policy.hpp"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace affinityctl {

/// Processes of a systemd unit, service, scope or slice, ascending; empty: there are none.
[[nodiscard]] affinityd::Result<std::vector<int>> processes_of_unit(const affinityd::host::Root& root,
                                                                    const std::string& unit);
/// Processes of this name, ascending.
[[nodiscard]] affinityd::Result<std::vector<int>> processes_of_name(const affinityd::host::Root& root,
                                                                    const std::string& name);

/// True if the policy's interfaces are those that its processes' sockets use, and their queues are placed.
[[nodiscard]] bool needs_sockets(const affinityd::policy::Policy& policy);

/// A process as it was found.
struct SeenProcess {
    affinityd::inventory::ProcessScan scan;
    std::optional<std::size_t> policy; ///< index into the set; no value: no policy wants it
    std::vector<affinityd::inventory::Thread> threads;
};

/// Processes in place of those of a machine.
struct OtherProcesses {
    std::string folder;                               ///< a recording of them; "": there are none
    std::map<int, affinityd::planner::NicNames> nics; ///< that serve a process, by its id
};

/// A machine at one moment, recorded or this one, with policies worked out on it as a daemon that starts then
/// would. Nothing is changed, and the daemon is not asked. Which interfaces serve a process by its sockets is
/// not known.
class StillMachine {
  public:
    /// `policies` must outlive it.
    static affinityd::Result<std::unique_ptr<StillMachine>> read(const affinityd::policy::PolicySet& policies,
                                                                 const std::string& folder,
                                                                 affinityd::machine::KnownLatencies latencies,
                                                                 const OtherProcesses& others = {});
    StillMachine(const StillMachine&) = delete;
    StillMachine& operator=(const StillMachine&) = delete;

    [[nodiscard]] const affinityd::policy::PolicySet& policies() const { return policies_; }
    [[nodiscard]] const affinityd::machine::Machine& machine() const { return machine_; }
    [[nodiscard]] const affinityd::planner::Placements& placements() const { return placements_; }
    [[nodiscard]] affinityd::planner::Assignments& assignments() { return assignments_; }
    [[nodiscard]] affinityd::planner::Planning planning();
    [[nodiscard]] const std::vector<SeenProcess>& processes() const { return processes_; }
    /// The process with this thread; nullptr: there is none.
    [[nodiscard]] const SeenProcess* process_of(int tid) const;
    /// Policies up to the one that matches, as `explain` names them.
    [[nodiscard]] std::vector<affinityd::planner::Verdict> consider(const SeenProcess& process) const;
    /// False: the recording lacks what this condition of a `match` asks of the process.
    [[nodiscard]] bool is_recorded(const SeenProcess& process, const std::string& field) const;
    /// Parts of the machine that the recording lacks: "interrupts (proc/interrupts)".
    [[nodiscard]] std::vector<std::string> missing_parts() const;
    /// CPUs that its cgroup lets a process have; nullptr: all, or not known.
    [[nodiscard]] const affinityd::CpuSet* cpuset(const SeenProcess& process);
    /// The interfaces that a policy names.
    [[nodiscard]] const affinityd::planner::NicNames& nics(std::size_t policy) const { return nics_[policy]; }

    using Sink =
        std::function<void(const affinityd::inventory::Thread&, const affinityd::planner::ThreadPlan&)>;
    /// Plans the threads of a process. To plan all, go in the order of processes(): slots are given in turn.
    void plan(const SeenProcess& process, const Sink& sink);
    /// The setting of a queue; no value: it is not there, or not known.
    [[nodiscard]] std::optional<affinityd::machine::Setting>
    present(const affinityd::machine::Subject& subject) const;

  private:
    StillMachine(const affinityd::policy::PolicySet& policies, affinityd::host::Root root,
                 affinityd::host::Root processes);
    [[nodiscard]] affinityd::Result<void> read_processes();

    const affinityd::policy::PolicySet& policies_;
    affinityd::host::Root root_, processes_root_;
    affinityd::inventory::FactSources sources_;
    affinityd::machine::Machine machine_;
    std::vector<SeenProcess> processes_;
    std::map<int, std::size_t> policy_of_; ///< pid -> policy
    std::vector<affinityd::planner::NicNames> nics_;
    affinityd::planner::Placements placements_;
    affinityd::planner::Assignments assignments_;
};

} // namespace affinityctl
