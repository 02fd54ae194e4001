// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/sharers/thread_choice.hpp"

#include "base/text.hpp"
#include "policy/pattern.hpp"

#include <algorithm>
#include <set>

namespace affinityctl {

namespace {

using affinityd::policy::Pattern;
using Threads = std::map<Wakes::Thread, WokenThread>;

constexpr std::size_t most_names = 32; ///< in one rule; more are no list that anybody reads
constexpr std::size_t few_names = 2;   ///< so many are listed, also where one pattern would do

class Matching {
  public:
    explicit Matching(const ThreadChoice& choice) : choice_(&choice) {
        for (const auto& text : choice.names)
            if (auto pattern = Pattern::parse(text)) patterns_.push_back(pattern->of_name());
    }
    /// No place satisfies no `index`.
    [[nodiscard]] bool holds(const WokenThread& thread) const {
        const auto& range = choice_->index;
        if (range && (!thread.index || *thread.index < range->first || *thread.index > range->second))
            return false;
        return choice_->names.empty() || std::ranges::any_of(patterns_, [&](const Pattern& pattern) {
                   return pattern.matches(thread.name);
               });
    }

  private:
    const ThreadChoice* choice_;
    std::vector<Pattern> patterns_;
};

/// With an index, those of the members that have ended do not count.
bool means_exactly(const ThreadChoice& choice, const Threads& threads,
                   const std::set<Wakes::Thread>& members) {
    const Matching matching(choice);
    return std::ranges::all_of(threads, [&](const auto& entry) {
        const auto& [id, thread] = entry;
        const bool is_out_of_account = choice.index && !thread.index;
        return is_out_of_account || matching.holds(thread) == members.contains(id);
    });
}

/// What all names begin with, without digits at its end: "io-thread-" of io-thread-1 and io-thread-12.
std::string common_beginning(const std::set<std::string>& names) {
    const std::string& first = *names.begin();
    const std::string& last = *names.rbegin();
    const auto end = std::ranges::mismatch(first, last).in1;
    std::string beginning(first.begin(), end);
    while (!beginning.empty() && affinityd::is_digit(beginning.back()))
        beginning.pop_back();
    return beginning;
}

/// Patterns for the names, the best first.
std::vector<std::vector<std::string>> ways_to_name(const std::set<std::string>& names) {
    std::vector<std::vector<std::string>> ways;
    if (names.empty() || names.contains("")) return ways;
    std::vector<std::string> list;
    for (const auto& name : names)
        list.push_back(name_pattern(name));
    if (names.size() <= few_names) ways.push_back(list);
    if (const auto beginning = common_beginning(names); names.size() > 1 && !beginning.empty())
        ways.push_back({name_pattern(beginning) + "*"});
    if (names.size() > few_names && names.size() <= most_names) ways.push_back(list);
    return ways;
}

std::optional<std::pair<unsigned, unsigned>> range_of(const Threads& threads,
                                                      const std::set<Wakes::Thread>& members) {
    std::optional<std::pair<unsigned, unsigned>> range;
    unsigned living = 0;
    for (const auto& id : members)
        if (const auto& index = threads.at(id).index) {
            if (!range) range = {*index, *index};
            range = {std::min(range->first, *index), std::max(range->second, *index)};
            ++living;
        }
    return living >= 2 ? range : std::nullopt;
}

} // namespace

std::string name_pattern(std::string_view name) {
    std::string pattern;
    for (const char c : name) {
        const bool is_special = c == '*' || c == '?' || c == '[' || c == '\\';
        const bool may_be_expression = c == '/' && pattern.empty();
        if (is_special || may_be_expression) pattern += '\\';
        pattern += c >= ' ' && c <= '~' ? c : '?';
    }
    return pattern;
}

std::optional<ThreadChoice> choose_threads(const Threads& threads,
                                           const std::vector<Wakes::Thread>& members) {
    const std::set<Wakes::Thread> wanted(members.begin(), members.end());
    std::set<std::string> names;
    for (const auto& id : wanted)
        names.insert(threads.at(id).name);
    const auto ways = ways_to_name(names);
    for (const auto& way : ways)
        if (ThreadChoice choice{way, {}}; means_exactly(choice, threads, wanted)) return choice;
    const auto range = range_of(threads, wanted);
    if (!range) return std::nullopt;
    if (ThreadChoice choice{{}, range}; means_exactly(choice, threads, wanted)) return choice;
    for (const auto& way : ways)
        if (ThreadChoice choice{way, range}; means_exactly(choice, threads, wanted)) return choice;
    return std::nullopt;
}

} // namespace affinityctl
