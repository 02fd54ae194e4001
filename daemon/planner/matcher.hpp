// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/task.hpp"
#include "policy/policy.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace affinityd::planner {

/// The policies that a process's ancestors are under. Only `parent:` asks for them.
class Lineage {
  public:
    virtual ~Lineage() = default;
    /// Names of the policies of the process's parent, grandparent, ... as far as they are under one.
    [[nodiscard]] virtual std::vector<std::string>
    ancestor_policies(const inventory::ProcessFacts& process) const = 0;
};

/// Whether a policy wants a process, and the condition that decided.
struct Verdict {
    std::size_t policy = 0; ///< index into the set
    bool matched = false;
    std::string field;  ///< the condition that failed ("comm"), "" if all held
    std::string wanted; ///< its patterns as written
    std::string found;  ///< what the process has
};

/// Finds the policy of a process: the first in the set's total order whose selector holds. Each policy is
/// indexed by one condition that must hold; literal texts are looked up, patterns are tried one after the
/// other. So expensive facts are read only while a policy that asks for them is still in play. Arguments are
/// no index: each process decides how long reading them takes, so they are asked for last.
class Matcher {
  public:
    /// `set` must outlive the matcher.
    explicit Matcher(const policy::PolicySet& set);

    /// Index into the set; no value if no policy wants the process. Only policies that say `kthread: true`
    /// want kernel threads.
    [[nodiscard]] std::optional<std::size_t> match(const inventory::ProcessFacts& process,
                                                   const Lineage& lineage) const;

    /// The verdict of each policy in order, up to and including the one that matched.
    [[nodiscard]] std::vector<Verdict> explain(const inventory::ProcessFacts& process,
                                               const Lineage& lineage) const;

    /// True if a policy before `now` (no value: any) may come to want the process without an event that says
    /// so: all that it asks for holds, but for its arguments, its ports and the policies of its ancestors.
    [[nodiscard]] bool may_want_later(const inventory::ProcessFacts& process, const Lineage& lineage,
                                      std::optional<std::size_t> now) const;
    /// True if some policy may come to want processes like that.
    [[nodiscard]] bool has_late_conditions() const { return !late_.empty(); }
    /// The ports that policies ask for, as ranges with both ends, ascending; empty: none does.
    using PortRanges = std::vector<std::pair<std::uint16_t, std::uint16_t>>;
    [[nodiscard]] const PortRanges& ports() const { return ports_; }
    /// True if some policy asks for users or groups.
    [[nodiscard]] bool asks_for_users() const { return asks_for_users_; }

    /// Index into the policy's thread rules; no value if the policy's own placement is for the thread.
    /// `index`: its place among the process's threads by tid, 0 for the main thread.
    [[nodiscard]] static std::optional<std::size_t> thread_rule(const policy::Policy& policy,
                                                                std::string_view name, unsigned index);

  private:
    using Field = policy::Condition::Field;
    struct Index {
        std::map<std::string, std::vector<std::size_t>, std::less<>> literal; ///< text -> policies, ascending
        std::vector<std::pair<policy::Pattern, std::size_t>> patterns;
        void collect(std::string_view text, std::vector<std::size_t>& into) const;
        [[nodiscard]] bool empty() const { return literal.empty() && patterns.empty(); }
    };
    const policy::PolicySet* set_;
    Index by_comm_, by_unit_, by_exe_;
    std::vector<std::size_t> always_; ///< policies without a condition that can be indexed
    std::vector<std::size_t> late_;   ///< policies with conditions that may come true without an event
    PortRanges ports_;
    bool asks_for_users_ = false;
    void add(std::size_t policy);
};

/// True if a selector holds for a process. Conditions on cheap facts are tested first, whatever order the
/// file has.
[[nodiscard]] bool holds(const policy::Selector& selector, const inventory::ProcessFacts& process,
                         const Lineage& lineage);
/// The names that `unit:` is compared with: the innermost systemd unit of the process's cgroup, and each
/// slice around it, those that a user made among them.
[[nodiscard]] std::vector<std::string> unit_names(const inventory::ProcessFacts& process);

/// A thread's own request: a fact about it, like its name.
struct Joined {
    std::string policy;  ///< that its process was under
    std::string slot;    ///< it has put itself into; "": none
    bool serves = false; ///< it has asked for the CPU where the packets of its socket arrive
    friend bool operator==(const Joined&, const Joined&) = default;
};

/// True if threads of the policy's processes may put themselves into the slot.
[[nodiscard]] bool may_join(const policy::Policy& policy, std::string_view slot);

/// Index of the thread rule that a thread goes by: that of the slot that it has joined, if the policy lets
/// it, else the first that its name and place lead to. No value: the policy's own placement. `joined`: null
/// if it has joined nothing.
[[nodiscard]] std::optional<std::size_t> rule_of(const policy::Policy& policy, std::string_view name,
                                                 unsigned index, const Joined* joined);

/// True if what the thread has asked for is in force under this policy. The thread has a place of its own
/// from then on, also while its process settles.
[[nodiscard]] bool is_in_force(const policy::Policy& policy, const Joined* joined);

} // namespace affinityd::planner
