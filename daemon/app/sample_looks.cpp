// SPDX-License-Identifier: Apache-2.0
#include "app/sample_looks.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace affinityd::app {

SampleLooks::SampleLooks(Parts parts)
    : parts_(std::move(parts)),
      sampling_(parts_.root.is_live() ? std::make_unique<locality::Sampling>(parts_.root) : nullptr) {}

void SampleLooks::ask(std::size_t most) {
    most_ = most;
    is_pass_owed_ = most > 0;
    if (most == 0) {
        placed_.clear();
        awaited_.clear();
        next_of_pass_ = {};
    }
    std::erase_if(placed_, [this](const auto& one) {
        const auto* known = parts_.tasks.find(one.first.tid);
        return known == nullptr || known->id != one.first;
    });
    if (pass_is_due()) {
        awaited_.clear(); // look() asks for them again
        ask_for({}, groups_of_pass());
    } else if (is_pass_owed_) {
        next_look_ = std::min(next_look_, next_of_pass_);
    }
}

/// Some processes of each policy, others each time.
SampleLooks::Groups SampleLooks::groups_of_pass() {
    Groups groups;
    for (const auto& [pid, process] : parts_.tasks.processes())
        groups[process.policy].push_back(pid);
    for (auto& [policy, pids] : groups) {
        std::ranges::sort(pids);
        std::ranges::rotate(pids, pids.begin() +
                                      static_cast<std::ptrdiff_t>(round_ * most_processes % pids.size()));
        if (pids.size() > most_processes) pids.resize(most_processes);
    }
    ++round_;
    is_pass_owed_ = false;
    if (!groups.empty()) next_of_pass_ = Clock::now() + between_passes;
    of_pass_ = {groups, questions_ + 1};
    return groups;
}

void SampleLooks::observe(const KnownProcess& process) {
    if (!sampling_ || most_ == 0 || placed_.contains(process.id)) return;
    if (parts_.current->policy(process.policy).steer != policy::Steer::tasks) return;
    placed_.emplace(process.id, looks_of_new);
    next_look_ = std::min(next_look_, Clock::now() + between_looks);
}

void SampleLooks::look() {
    next_look_ = Clock::time_point::max();
    awaited_.clear();
    // What the pass has asked for is asked for again, for the new question takes the place of the old one.
    auto groups = pass_is_due() ? groups_of_pass() : of_pass_.groups;
    if (is_pass_owed_) next_look_ = next_of_pass_;
    Groups awaited;
    std::size_t left = most_new;
    for (const auto& [id, looks] : placed_) {
        if (looks == 0 || left == 0) continue;
        const auto* known = parts_.tasks.find(id.tid);
        if (known == nullptr || known->id != id) continue;
        --left;
        awaited_.push_back(id);
        awaited[known->policy].push_back(id.tid);
        if (const auto group = groups.find(known->policy); group != groups.end())
            std::erase(group->second, id.tid);
    }
    if (!awaited_.empty()) next_look_ = std::min(next_look_, Clock::now() + between_looks);
    ask_for(std::move(awaited), std::move(groups));
}

void SampleLooks::ask_for(Groups awaited, Groups groups) {
    if (!sampling_ || most_ == 0 || (awaited.empty() && groups.empty())) return;
    locality::Sampling::Asked asked{.awaited = {}, .groups = {}, .most = most_, .number = ++questions_};
    for (auto& [policy, pids] : awaited)
        asked.awaited.push_back(std::move(pids));
    for (auto& [policy, pids] : groups)
        asked.groups.push_back(std::move(pids));
    if (!sampling_->ask(std::move(asked)))
        parts_.log.warn("no thread is to be had to look at connections", "connections not sampled");
}

void SampleLooks::take() {
    const auto found = sampling_ ? sampling_->take() : std::nullopt;
    if (!found) return;
    if (found->number >= of_pass_.since) of_pass_.groups.clear();
    // The answer may be that to the question before: one look less for those that have come since.
    for (const auto& id : awaited_)
        if (const auto one = placed_.find(id); one != placed_.end() && one->second > 0) --one->second;
    if (found->refused != 0)
        parts_.log.warn(
            fmt::format("connections of some process cannot be looked at, how local its reads are is "
                        "not known: {}",
                        host::why_not_reached(found->refused)),
            "connections not sampled");
    if (most_ > 0) parts_.found(found->counts);
}

} // namespace affinityd::app
