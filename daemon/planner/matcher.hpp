// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/task.hpp"
#include "policy/policy.hpp"

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::planner {

/// Which policies a process's ancestors are under; asked only for `parent:`.
class Lineage {
  public:
    virtual ~Lineage() = default;
    /// Names of the policies of the process's parent, grandparent, ... as far as they are under one.
    [[nodiscard]] virtual std::vector<std::string>
    ancestor_policies(const inventory::ProcessFacts& process) const = 0;
};

/// Why a policy does or does not want a process: the first condition that decided.
struct Verdict {
    std::size_t policy = 0; ///< index into the set
    bool matched = false;
    std::string field;  ///< the condition that failed ("comm"), "" if all held
    std::string wanted; ///< its patterns as written
    std::string found;  ///< what the process has
};

/// Finds the policy of a process: the first in the set's total order whose selector holds. One code for
/// start, reconcile and the fast path. Dear facts are read only while a policy that asks for them is still in
/// play: policies are found by an index over one condition each that must hold, literal names by hash,
/// patterns one after the other.
class Matcher {
  public:
    /// `set` must outlive the matcher.
    explicit Matcher(const policy::PolicySet& set);

    /// Index into the set, or nothing. Kernel threads are wanted only by policies that say `kthread: true`.
    [[nodiscard]] std::optional<std::size_t> match(const inventory::ProcessFacts& process,
                                                   const Lineage& lineage) const;

    /// Every policy in order with its verdict, up to and including the one that matched.
    [[nodiscard]] std::vector<Verdict> explain(const inventory::ProcessFacts& process,
                                               const Lineage& lineage) const;

    /// Index into the policy's thread rules, or nothing: the policy's own placement. `index` counts the
    /// process's threads by tid, 0 for the main thread.
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
    Index by_comm_, by_unit_, by_exe_, by_cmdline_;
    std::vector<std::size_t> always_; ///< policies with no condition that can be indexed
    void add(std::size_t policy);
};

} // namespace affinityd::planner
