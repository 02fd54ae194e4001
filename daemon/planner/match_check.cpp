// SPDX-License-Identifier: Apache-2.0
#include "planner/match_check.hpp"

#include "planner/condition.hpp"
#include "planner/matcher.hpp"
#include "policy/suggest.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

namespace affinityd::planner {

namespace {

using policy::Condition;
using policy::Policy;
using policy::Selector;
using Field = Condition::Field;
using Processes = std::vector<const inventory::ProcessFacts*>;

/// Lineage among the given processes; the daemon knows it from its tasks under policy.
class Ancestors final : public Lineage {
  public:
    Ancestors(const std::vector<const inventory::ProcessFacts*>& processes, const policy::PolicySet& set)
        : set_(set) {
        for (const auto* process : processes)
            by_pid_.emplace(process->id().tid, process);
    }

    [[nodiscard]] std::vector<std::string>
    ancestor_policies(const inventory::ProcessFacts& process) const override {
        std::vector<std::string> names;
        int pid = process.parent();
        for (unsigned depth = 0; depth < max_depth && pid > 0; ++depth) {
            if (const auto matched = matched_.find(pid); matched != matched_.end())
                names.push_back(set_.policies[matched->second].name);
            const auto parent = by_pid_.find(pid);
            if (parent == by_pid_.end()) break;
            pid = parent->second->parent();
        }
        return names;
    }

    void set_policy(int pid, std::size_t policy) { matched_[pid] = policy; }

  private:
    static constexpr unsigned max_depth = 1000; // a hostile recording may have rings
    const policy::PolicySet& set_;
    std::unordered_map<int, const inventory::ProcessFacts*> by_pid_;
    std::unordered_map<int, std::size_t> matched_; ///< pid -> policy
};

/// Hints about policies that match nothing.
class Doctor {
  public:
    Doctor(const policy::PolicySet& set, const Processes& processes, const KnownNames& known,
           const Matcher& matcher, const Ancestors& ancestors)
        : set_(set), processes_(processes), matcher_(matcher), ancestors_(ancestors),
          units_(known.units.begin(), known.units.end()), users_(known.users.begin(), known.users.end()) {}

    std::string hint(const Policy& policy) {
        if (auto text = takers(policy); !text.empty()) return text;
        return misspelt(policy.match);
    }

  private:
    /// Who takes the processes that the policy would match.
    [[nodiscard]] std::string takers(const Policy& policy) const {
        std::map<std::string, std::size_t> found;
        for (const auto* process : processes_) {
            if (policy.everything_else || !holds(policy.match, *process, ancestors_)) continue;
            if (const auto taker = matcher_.match(*process, ancestors_)) ++found[set_.policies[*taker].name];
        }
        std::string text;
        for (const auto& [name, count] : found)
            text += (text.empty() ? "" : ", ") + policy::in_quotes(name) + " takes " + std::to_string(count) +
                    (count == 1 ? " process" : " processes") + " that it would match";
        return text.empty() ? text : text + ": give it a higher priority, or another match";
    }

    std::string misspelt(const Selector& selector) {
        for (const auto& child : selector.children)
            if (auto text = misspelt(child); !text.empty()) return text;
        if (selector.op != Selector::Op::test) return {};
        const auto& condition = selector.condition;
        if (condition.field == Field::unit) return misspelt(condition, "unit", units());
        if (condition.field == Field::user) return misspelt(condition, "user", users());
        return {};
    }

    static std::string misspelt(const Condition& condition, std::string_view what,
                                const std::set<std::string, std::less<>>& known) {
        const std::vector<std::string_view> words(known.begin(), known.end());
        for (const auto& pattern : condition.patterns) {
            if (!pattern.is_literal() || known.contains(pattern.text())) continue;
            const auto meant = policy::did_you_mean(pattern.text(), words);
            if (!meant.empty())
                return "there is no " + std::string(what) + " " + policy::in_quotes(pattern.text()) +
                       " here: " + meant;
        }
        return {};
    }

    const std::set<std::string, std::less<>>& units() {
        if (!has_units_)
            for (const auto* process : processes_)
                for (auto& name : unit_names(*process))
                    units_.insert(std::move(name));
        has_units_ = true;
        return units_;
    }

    const std::set<std::string, std::less<>>& users() {
        if (!has_users_)
            for (const auto* process : processes_)
                users_.insert(process->user());
        has_users_ = true;
        return users_;
    }

    const policy::PolicySet& set_;
    const Processes& processes_;
    const Matcher& matcher_;
    const Ancestors& ancestors_;
    std::set<std::string, std::less<>> units_;
    std::set<std::string, std::less<>> users_;
    bool has_units_ = false; ///< those of processes are among them, too
    bool has_users_ = false;
};

} // namespace

Matches check_matches(const policy::PolicySet& policies, const Processes& processes,
                      const KnownNames& known) {
    const Matcher matcher(policies);
    Ancestors ancestors(processes, policies);
    Matches matches;
    // A parent may come after its child in the list. Two rounds find a policy that is asked for by `parent`;
    // longer chains in the wrong order cost no more than a needless note.
    constexpr std::size_t few = 16;
    for (unsigned round = 0; round < 2; ++round) {
        matches.processes.assign(policies.policies.size(), 0);
        matches.pids.assign(policies.policies.size(), {});
        matches.units.assign(policies.policies.size(), {});
        for (const auto* process : processes) {
            const auto policy = matcher.match(*process, ancestors);
            if (!policy) continue;
            ++matches.processes[*policy];
            if (matches.pids[*policy].size() < few) {
                matches.pids[*policy].push_back(process->id().tid);
                for (auto& unit : unit_names(*process))
                    matches.units[*policy].insert(std::move(unit));
            }
            ancestors.set_policy(process->id().tid, *policy);
        }
    }
    Doctor doctor(policies, processes, known, matcher, ancestors);
    for (std::size_t at = 0; at < policies.policies.size(); ++at) {
        const Policy& policy = policies.policies[at];
        if (matches.processes[at] == 0 && policy.model != policy::Model::irq)
            matches.notes.push_back(
                {.severity = policy::Severity::note,
                 .at = policy.at,
                 .length = 1,
                 .message = policy.exclusive == policy::Exclusive::always
                                ? "no process is matched by this policy now, and all others are "
                                  "kept off its CPUs all the same (exclusive: always)"
                                : "no process is matched by this policy now",
                 .hint = doctor.hint(policy),
                 .source_line = {}});
    }
    return matches;
}

} // namespace affinityd::planner
