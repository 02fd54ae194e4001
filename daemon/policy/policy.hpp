// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/model.hpp"
#include "policy/cpu_expr.hpp"
#include "policy/pattern.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace affinityd::policy {

using affinityd::Model;
/// How tasks are distributed over the CPUs: one after the other over the groups of this level.
enum class Spread { any, cpu, core, llc, node, socket };
/// How wide each task's mask is around its place.
enum class Bind { cpu, core, llc, node, set };
enum class Smt {
    share,
    avoid, ///< of the CPUs of one core in the set, only the first is used
    pair   ///< two tasks of a process, numbered 2k and 2k + 1 by their names, have one core, and a CPU of it
           ///< each
};
enum class Drift { enforce, once, yield }; ///< what happens when another program changes a mask afterwards
enum class Prior { replace, keep };        ///< what happens to a mask that a task had before
enum class OnStop { restore, keep };
enum class Means { affinity, cpuset };
enum class Memory { stay, follow, interleave };
enum class Exclusive { no, yes, always }; ///< yes: while a program of the policy runs
/// How connections come to the worker on whose lane their packets arrive.
enum class Steer {
    none,
    automatic, ///< accept, where workers have listeners of their own
    accept,    ///< by listeners that prefer what arrives on their workers' lanes
    tasks,     ///< not at all: the task goes to the lane where its packets arrive
    flows      ///< not at all: packets go to the lane of the task that reads them (RFS)
};

/// A place in a file; line and column from 1.
struct Position {
    std::string file;
    unsigned line = 0;
    unsigned column = 0;
    friend bool operator==(const Position&, const Position&) = default;
};

/// A key of `match`: holds if any of its patterns (or ports) does.
struct Condition {
    /// In the order of the key table.
    enum class Field {
        comm,
        exe,
        cmdline,
        unit,
        cgroup,
        user,
        group,
        container,
        pod,
        pod_namespace,
        parent,
        listen,
        kthread
    };
    Field field = Field::comm;
    std::vector<Pattern> patterns; ///< any of; `parent`: names of policies whose processes are the ancestors
    std::vector<std::pair<std::uint16_t, std::uint16_t>> ports; ///< `listen`: ranges, both ends included
    bool flag = false;                                          ///< `kthread`: wanted value
    bool user_units = false; ///< `unit`, `container`: those that users made count, too
    Position at;
};

/// A tree of conditions.
struct Selector {
    enum class Op { all, any, none, test }; ///< none: no child holds (`not:`)
    Op op = Op::all;
    std::vector<Selector> children; ///< empty for `test`; an `all` without children always holds, an `any`
                                    ///< without children never
    Condition condition;            ///< of `test`
};

/// Placement keys of a policy; a thread rule may override each.
struct Placement {
    std::optional<CpuExpr> cpus; ///< no value: every online CPU that is not isolated
    std::optional<CpuExpr> near; ///< among `cpus`, those nearest to these come first
    Spread spread = Spread::any;
    Bind bind = Bind::llc;
    Smt smt = Smt::share;
    Position cpus_at, near_at;
    /// `near: measured`: the tasks come near to each other; then `near` has no value.
    bool near_measured = false;
    /// `near: room`: a process goes to a NUMA node that has memory for it; then `near` has no value.
    bool near_room = false;
    bool has_spread = false, has_bind = false; ///< the file says so, for the policy or for the rule
};

/// An entry of `threads`; the first whose conditions hold wins.
struct ThreadRule {
    std::vector<Pattern> names; ///< any of; empty: every name
    std::optional<std::pair<unsigned, unsigned>>
        index;                 ///< place among the process's threads by tid, 0 = main thread
    std::string slot;          ///< threads that join it have this rule, whatever their names; "": none can
    bool leave = false;        ///< `leave: true`: these threads are not touched
    std::vector<Pattern> nics; ///< names or globs of those that they read from; empty: as their process
    Placement placement;       ///< policy's values where the rule states none
    Position at;
    /// No name leads to it.
    [[nodiscard]] bool is_for_joined_only() const { return !slot.empty() && names.empty() && !index; }
};

/// `together`: all threads of one process stay inside one group of this level.
enum class Together {
    none,
    core,
    llc,
    node,
    socket,
    measured ///< no group: each on a CPU of its own, as close to the others as can be
};

/// A file of policies.d, checked: defaults are filled in, and no value needs another check.
struct Policy {
    std::string name; ///< file name without .yaml; unique
    std::string description;
    Position at;                  ///< of the document
    int priority = 0;             ///< higher first
    bool everything_else = false; ///< `default: true`: for tasks that no other policy wants
    /// Hash of the file's text, the same on every machine: policies with equal hashes count as unchanged.
    std::uint64_t text_hash = 0;

    Selector match;
    Position match_at; ///< of the key `match`, or of the document if it has none
    Model model = Model::process;
    /// `affinity: auto`: the model and `steer` are chosen by trials. As it is read, they are the most that
    /// they may come to, so that all is checked.
    bool model_auto = false;
    Placement placement;
    Together together = Together::none;
    std::vector<ThreadRule> threads;
    /// Slots that threads may put themselves into: of `threads`, or `arrivals_slot`.
    std::vector<std::string> allow_join;
    Exclusive exclusive = Exclusive::no; ///< every other task is kept off these CPUs
    bool isolate =
        false; ///< and so is what else can be moved: interrupts, kernel threads; never without `exclusive`

    bool nics_auto = true;     ///< by the sockets of the matched processes
    std::vector<Pattern> nics; ///< names or globs when not auto
    Position nics_at;
    std::vector<Pattern> irqs; ///< other interrupts, by handler or PCI function
    bool separate = false;     ///< interrupts off the worker's core, but in its cache group
    bool steering = true;      ///< maps of XPS, RPS and RFS of the NICs are set, too
    Position rps_at;
    std::optional<CpuExpr> rps;     ///< CPUs to which RPS hands packets on; no value: seats of readers
    Steer steer = Steer::automatic; ///< only `full` steers

    Drift drift = Drift::enforce;
    Prior prior = Prior::replace;
    OnStop on_stop = OnStop::restore;
    Means means = Means::affinity;
    Memory memory = Memory::stay;
    /// 0 to one minute. A new process has all CPUs of the policy for so long, or until it has made its
    /// threads.
    std::chrono::milliseconds settle{2000};
    /// True: the policy is for interrupts that it names, whether or not a process matches.
    [[nodiscard]] bool names_interrupts() const { return !nics_auto || !irqs.empty(); }
};

/// Later files override earlier ones of the same name; this is what was overridden.
struct Override {
    std::string name;
    std::string path;    ///< the file that lost
    std::string by;      ///< the file that won
    bool masked = false; ///< the winner is empty
};

/// A whole loaded set, in the order in which policies are asked: priority (higher first),
/// specificity of `match` (higher first), name; `default: true` last.
struct PolicySet {
    std::vector<Policy> policies;
    std::vector<Override> overrides;
};

/// The slot that needs no thread rule: wherever the packets of a thread's socket arrive.
inline constexpr std::string_view arrivals_slot = "arrivals";
inline constexpr std::size_t longest_slot = 31; ///< bytes
/// True for 1 to 31 letters, digits, dots, dashes and underscores.
[[nodiscard]] bool is_slot_name(std::string_view text);

/// The key of a condition, as it is written.
[[nodiscard]] std::string_view field_name(Condition::Field field);

/// Number of conditions that must hold, weighted as affinityd.policy(5) says; part of the order.
[[nodiscard]] unsigned specificity(const Selector& selector);

/// The policy as a file of the language, complete: every key with the value that holds, whether it was
/// written or not, in the order of the key table. Reading it gives an equal policy (positions aside).
[[nodiscard]] std::string to_yaml(const Policy& policy);
/// A text of any bytes, in double quotes.
[[nodiscard]] std::string yaml_text(std::string_view text);
/// The selector as the value of `match`: {comm: ["redis-server"], not: [{user: ["root"]}]}.
[[nodiscard]] std::string to_yaml(const Selector& selector);

} // namespace affinityd::policy
