// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "accounting/passive_cost.hpp"
#include "enforcer/enforcer.hpp"
#include "inventory/task.hpp"
#include "locality/locality.hpp"
#include "planner/action.hpp"
#include "planner/arrivals.hpp"
#include "planner/crowding.hpp"
#include "planner/judgement.hpp"
#include "planner/matcher.hpp"
#include "planner/plan.hpp"
#include "policy/policy.hpp"
#include "policy/settings.hpp"
#include "status/findings.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace affinityd::status {

// All that the daemon says of itself, as plain values. core fills them in; JSON, tables and reports are forms
// of them.

/// Listeners that are left as they are, by the reason.
using NotSteered = std::map<planner::NotSteered, std::size_t>;

/// How tasks under `steer: tasks` stand to their packets: how many of each.
using TasksAtArrivals = std::map<planner::AtArrivals, std::size_t>;

struct ThreadStatus {
    int tid = 0;
    std::string comm;
    planner::ThreadPlan::State state = planner::ThreadPlan::State::unwanted;
    bool is_fought_over = false;
    bool has_drifted = false;  ///< it was in place, and another program has changed it since
    bool would_change = false; ///< a dry run leaves it, and a daemon that acts would set it
    CpuSet wanted;
    CpuSet present;                           ///< as it is now
    std::optional<enforcer::Outcome> outcome; ///< of the last change; no value: none was needed
    unsigned corrections = 0;                 ///< how often it was put right in a row, lately
};

/// Without its threads, of which there may be thousands.
struct ProcessStatus {
    int pid = 0;
    uid_t owner = static_cast<uid_t>(-1); ///< who may read its names; -1: root only
    std::string comm;
    std::string policy;
    std::vector<std::string> nics; ///< interfaces that serve it, as far as known
    std::string nics_note;         ///< why they are not known; "": they are, or do not matter
    std::vector<unsigned>
        memory_nodes;         ///< under `memory: follow` or `interleave`: where its memory was last sent
    std::string memory_state; ///< what became of that; "": it was not asked for
};

/// Interfaces that serve the same tasks, and the cores where these are together with their interrupts.
struct LanesStatus {
    std::vector<std::string> nics;
    std::vector<std::string> spares; ///< those of them that a bond keeps for when another fails
    std::vector<CpuSet> cores;
};

/// Threads that have put themselves somewhere, by the slot; those that are where their packets arrive count
/// as `arrivals`, too.
struct JoinedStatus {
    std::size_t threads = 0;
    std::map<std::string, std::size_t> slots{}; ///< all that may be joined; none without allow_join
};

/// Interruptions of the CPUs that a policy has for itself, by the kernel's counters.
struct Interruptions {
    enum class Kind : std::uint8_t { device, timer, call, other }; ///< call: by other CPUs (IPI)
    using Counts = std::array<std::uint64_t, 4>;                   ///< by Kind
    std::chrono::seconds length{};                                 ///< that they were counted for
    Counts counts{};
};

/// The tasks that a policy holds.
struct Held {
    std::size_t processes = 0;
    std::size_t threads = 0;
    std::size_t threads_wanted = 0; ///< of them, those that it gives a place: not those it leaves alone
    std::size_t threads_in_place = 0;
    std::size_t threads_drifted = 0;   ///< were in place, and another program has changed them since
    std::uint64_t drift_put_right = 0; ///< how often, since the start of the daemon
    JoinedStatus joined{};
};

/// How near to the CPU that took a packet in the process reads it, as counted.
struct LocalStatus {
    std::uint64_t samples = 0; ///< those of which the arrival is not known included
    std::uint64_t unknown = 0;
    locality::NearShares same;
    locality::NearShares chance; ///< if packets came to it wherever they arrive
};

struct PolicyStatus {
    std::string name;
    std::string description;
    std::string file;
    policy::Model model = policy::Model::process;
    CpuSet cpus;         ///< those of its thread rules included
    bool active = false; ///< can be carried out on this machine
    bool released = false;
    std::vector<std::string> nics; ///< whose queues it places
    std::vector<LanesStatus> lanes{};
    Held held{};
    std::string note{};      ///< that it does not do what it says, and why; ""
    std::string automatic{}; ///< under `affinity: auto`: how far the choice is; else ""
    struct Packets {
        std::optional<planner::ListenerPlan>
            steer{};                        ///< no value: it does not steer, or nothing is known yet
        std::optional<LocalStatus> local{}; ///< no value: too few connections were seen
        TasksAtArrivals tasks{}; ///< none: it does not steer tasks, or none of their packets were seen
        /// Connections or datagrams taken, by the threads that took any.
        struct Accepts {
            std::size_t workers = 0;
            std::uint64_t least = 0, most = 0;
        } accepts{};
    };
    Packets packets{};
    std::optional<Interruptions> interruptions{}; ///< no value: it has no CPUs for itself, or not long enough
};

struct QueueStatus {
    enum class State : std::uint8_t {
        in_place,         ///< has what it should have, or what the kernel gives in place of it
        not_read,         ///< not found yet
        not_in_place,     ///< the next pass puts it right
        would_change,     ///< the same in a dry run, which leaves it
        fought_over,      ///< another program keeps changing it
        stood_in,         ///< on another CPU, as its own has no interrupt vector left
        refused,          ///< the kernel did not take it
        immovable,        ///< the kernel never takes it
        decided_by_other, ///< one line with an interface that comes first
        released,         ///< its policy was told to let go
    };
    planner::Subject subject;
    std::string nic;
    std::string policy;
    planner::Setting wanted;
    planner::Setting present;
    planner::Reason reason;
    std::optional<planner::Setting> original; ///< no value: it was never changed
    State state = State::not_read;
    std::string note;             ///< why it is not where it should be; ""
    std::string shared_with = {}; ///< of an interrupt line: whom else it serves; ""
    bool is_kept_off = false;     ///< no policy places it; it is only kept off isolated CPUs
};

struct UnitStatus {
    std::string unit;
    std::string policy;
    CpuSet wanted;
    std::string state; ///< "in place", or why not
};

/// Something else on this machine that sets the masks of interrupts.
struct OtherWriter {
    std::string name;       ///< "irqbalance", "tuned", "sched_ext"
    std::string where;      ///< "pid 812", or the name of the scheduler
    std::string note;       ///< what it does, what was done about it, or what a person can do
    bool keeps_off = false; ///< it leaves alone what is under policy
    friend bool operator==(const OtherWriter&, const OtherWriter&) = default;
};

/// A person with so many events that some processes are looked at by passes only.
struct FloodStatus {
    int pid = 0; ///< the process with most of them
    uid_t uid = 0;
    std::string user{};                 ///< its name, or its number
    std::uint64_t events_a_minute = 0;  ///< that were left to passes
    std::chrono::milliseconds pause{0}; ///< between looks
    bool is_muted = false;              ///< its renames and threads are not reported for a while
};

/// A file with errors that does not count, or not as it stands.
struct FileFault {
    policy::Position at;    ///< line 0: the file as a whole
    std::string policy;     ///< whose file it is; "": the settings
    std::string message;    ///< what is wrong
    std::string shown{};    ///< the same with the place, and below it the line of the file
    std::string in_force{}; ///< where what counts in its place can be read; "": nothing does
    std::string note{};     ///< why nothing does; "": there was nothing
    std::string mend{};     ///< the command that mends it or tells more
};

/// The last time that files were read.
struct LoadStatus {
    std::chrono::system_clock::time_point at{};
    std::string refused;           ///< why nothing of it counts; ""
    std::vector<FileFault> faults; ///< of files that are not in force as they stand
};

/// A policy that is tried for a while, and then goes back by itself.
struct TrialStatus {
    std::string policy;
    std::string file;           ///< that it is kept in, with a line before its text
    std::string replaces;       ///< the file that counts without it; "": none
    std::uint64_t own_text = 0; ///< fnv1a_64() of the file that overrides all, when it began; 0: none
    std::chrono::milliseconds length{}, left{};
    std::chrono::milliseconds until_placed{}; ///< its programs are only watched for so long
    planner::Judgement judgement{};           ///< as far as it can be told
    std::string outcome{};                    ///< of one that is over: "kept" or "went back"
};

/// Problems that an administrator knows of, by their names, and until when.
using Acknowledged = std::map<std::string, std::chrono::system_clock::time_point>;

/// How many of something took how long.
struct Latencies {
    static constexpr std::array bounds{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.1, 1.0}; ///< s
    std::array<std::uint64_t, bounds.size() + 1> counts{}; ///< up to each bound, and above the last
    double seconds = 0;                                    ///< of all
    void add(std::chrono::duration<double> time) {
        seconds += std::max(time.count(), 0.0);
        ++counts.at(
            static_cast<std::size_t>(std::ranges::lower_bound(bounds, time.count()) - bounds.begin()));
    }
};

/// Everything that does not grow with the number of tasks and queues.
struct Overview {
    using Time = std::chrono::system_clock::time_point;
    int pid = 0;
    bool dry_run = false;
    Time started_at{}, loaded_at{};
    policy::Settings settings{}; ///< in force
    CpuSet online{};
    std::size_t journal = 0;                      ///< subjects in the undo journal now
    std::uint64_t passes = 0;                     ///< since the start
    bool passing = false;                         ///< one is under way
    Time last_pass{};                             ///< when the last one ended; the epoch: none has
    std::chrono::duration<double> pass_length{0}; ///< of the last one
    std::uint64_t by_event = 0;                   ///< processes and threads handled by an event
    Latencies latencies{};                        ///< from events to places
    std::uint64_t events_lost = 0;                ///< how often the kernel dropped some
    std::vector<std::pair<planner::Subject, std::string>> refused{}; ///< with why
    std::map<std::string, std::uint64_t> outcomes{};                 ///< outcome -> how often
    LoadStatus load{};
    std::vector<PolicyStatus> policies;
    std::vector<int> released;     ///< processes, by hand
    std::vector<Finding> problems; ///< notes are among them until finish() takes them out
    std::vector<Finding> notes{};
    Severity health = Severity::note; ///< that of the gravest; note: all is well
    std::vector<UnitStatus> units;
    std::vector<OtherWriter> other_writers;
    std::vector<FloodStatus> floods{};
    Acknowledged acknowledged{};
    std::vector<TrialStatus> trials{};
    accounting::CostReport costs{};
    std::optional<planner::Crowding> crowding; ///< the worst; no value: none is known
};

/// The answer of `explain` about one thread.
struct ThreadExplanation {
    inventory::Thread thread;
    planner::ThreadPlan plan;
    std::string reason;                         ///< why its target is where it is; "": it has none
    std::optional<policy::Position> decided_by; ///< file and line of the rule or policy that decided
    std::optional<planner::Setting> original;   ///< no value: it was never changed
    CpuSet cpuset;                              ///< of its process; empty: not known
    std::optional<std::size_t> rule{};          ///< index of the thread rule that names it; no value: none
    std::optional<planner::Joined> joined{};    ///< what it has asked for itself, where that is in force
};

/// Where the file says what becomes of a thread of the policy: its thread rule, or the policy's `match`. A
/// lane or a group is the policy's even for a thread that a rule names. No value: the kernel has it
/// immovable.
[[nodiscard]] std::optional<policy::Position> decided_by(const policy::Policy& policy,
                                                         const ThreadExplanation& thread);

/// A policy that was considered for a process.
struct Considered {
    std::string policy;
    policy::Position at;
    planner::Verdict verdict;
};

/// The answer of `explain` about a process.
struct ProcessExplanation {
    int pid = 0;
    uid_t owner = static_cast<uid_t>(-1);
    std::string comm;
    std::string policy;                                    ///< "": none
    std::optional<std::chrono::milliseconds> trial_left{}; ///< its policy is on trial for so long
    std::string automatic{};                               ///< as in PolicyStatus
    bool released = false;
    std::optional<planner::KeptOff> kept_off{}; ///< CPUs that others have claimed; no value: it may have all
    std::vector<Considered> considered;
    std::vector<std::string> nics;
    std::string nics_note; ///< as in ProcessStatus
    std::string way{};     ///< from its network namespace to these, hop by hop; "": it is in the daemon's
    /// The listeners that get the connections of one CPU, and why others do not.
    struct Accepting {
        struct Listener {
            std::uint16_t port = 0;
            int thread = 0; ///< its worker
            unsigned cpu = 0;
            bool is_datagram = false; ///< a socket of UDP
        };
        std::vector<Listener> listeners{};
        NotSteered left{}; ///< of its policy; none if it has some
        struct Handed {
            std::uint64_t to_lane = 0, to_next = 0, to_kernel = 0, full = 0;
        };
        std::optional<Handed> handed{};    ///< connections of its network namespace; full: queues passed over
        std::optional<Handed> datagrams{}; ///< the same of datagrams
        std::string pinned{}; ///< that it is bound closely, and nothing brings its packets there; ""
    } accepting{};
    /// The process's connections, as far as known.
    struct Receiving {
        std::optional<LocalStatus> local{}; ///< no value: none was seen
        std::vector<locality::ArrivalPlace> arrivals{};
        TasksAtArrivals tasks{}; ///< none: its policy does not steer tasks
    };
    Receiving receiving{};
    std::string fenced_unit; ///< under `means: cpuset`; "": none
    std::string fence_state;
};

} // namespace affinityd::status
