// SPDX-License-Identifier: Apache-2.0
#include "app/problems.hpp"

#include "app/claim_notes.hpp"
#include "app/nic_notes.hpp"
#include "app/overview.hpp"
#include "app/silent_processes.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <utility>

namespace affinityd::app {

namespace {

std::string key_of(const planner::Problem& problem) {
    std::string text = problem.policy + '\n' + problem.subject + '\n';
    std::ranges::copy_if(problem.message, std::back_inserter(text),
                         [](unsigned char byte) { return std::isdigit(byte) == 0; });
    return text;
}

} // namespace

std::vector<status::ProblemStatus> Problems::present() const {
    const auto& world = *sources_.current.world;
    std::vector<status::ProblemStatus> list;
    const auto add = [&](const char* kind, std::vector<planner::Problem> problems) {
        for (auto& problem : problems)
            list.push_back({std::move(problem), kind, {}});
    };
    add("file", sources_.loading.problems());
    add("policy", world.placements().problems);
    add("nic", nic_problems(world, sources_.tasks.table()));
    // Until the first pass is over, not all processes have been seen.
    if (last_pass_ != Time{}) add("claim", idle_claims(world, sources_.tasks.table()));
    for (const auto& fault : sources_.executor.journal().faults())
        add("journal", {{{}, fault.subject, "the undo journal: " + fault.message}});
    add("process", silence_problems(sources_.tasks.sources().command_lines()));
    if (const auto* listeners = sources_.tasks.sources().listeners()) {
        if (const auto fault = listeners->fault())
            add("listener", {{{}, "listen", "the list of listeners cannot be read: " + fault->to_string()}});
        if (const auto known = listeners->list(); known && known->is_truncated)
            add("listener",
                {{{}, "listen", "more sockets listen on ports of policies than are read", "ss -ltunp"}});
    }
    add("events",
        event_problems(sources_.tasks.events(), sources_.settings.reconcile_interval, sources_.root));
    add("rights", right_problems(sources_.executor));
    add("unit", sources_.units.problems());
    add("steering", sources_.steering.problems());
    return list;
}

std::vector<status::ProblemStatus> Problems::list() {
    const auto now = std::chrono::system_clock::now();
    std::unordered_map<std::string, Time> still;
    auto list = present();
    for (auto& [problem, kind, since] : list) {
        auto key = key_of(problem);
        const auto known = since_.find(key);
        since = known == since_.end() ? now : known->second;
        still.emplace(std::move(key), since);
    }
    since_ = std::move(still);
    std::ranges::stable_sort(list, std::ranges::greater{}, &status::ProblemStatus::since);
    return list;
}

void Problems::end_pass() {
    last_pass_ = std::chrono::system_clock::now();
    (void)list();
}

} // namespace affinityd::app
