// SPDX-License-Identifier: Apache-2.0
#include "app/listener_records.hpp"

#include "app/notices.hpp"
#include "inventory/lookup.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace affinityd::app {

namespace {

/// Somebody makes calls on it wait, or did lately, see host::patiently(); or nobody has been found yet who
/// has it open.
bool may_be_reached_soon(int code) {
    return code == EBUSY || code == EAGAIN || code == EINPROGRESS || code == EOWNERDEAD;
}

} // namespace

void ListenerRecords::forget_plans() {
    decided_.clear();
    given_up_.clear();
}

void ListenerRecords::note(const planner::ListenerPlan& plan) {
    for (const auto& subject : plan.undecided)
        decided_.emplace(subject.cookie, false);
    for (const auto& subject : plan.decided_against)
        decided_.insert_or_assign(subject.cookie, true);
}

ListenerRecords::Sorted ListenerRecords::sort(const std::vector<planner::ListenerTarget>& targets,
                                              const std::function<bool(const std::string& policy)>& steers) {
    std::unordered_set<std::uint64_t> wanted;
    for (const auto& target : targets)
        wanted.insert(target.subject.cookie);
    Sorted sorted;
    counts_.clear();
    for (auto& entry : parts_.journal.queues()) {
        const auto* listener = std::get_if<planner::ListenerCpu>(&entry.subject);
        if (listener == nullptr) continue;
        if (wanted.contains(listener->cookie)) continue;
        ++counts_[entry.record.policy];
        const auto decided = decided_.find(listener->cookie);
        if (!steers(entry.record.policy) || given_up_.contains(listener->cookie))
            sorted.unwanted.push_back(std::move(entry.subject));
        else if (decided == decided_.end() || decided->second)
            sorted.doubtful.push_back(std::move(entry.subject));
    }
    // Others are the first to be looked at in each round.
    const auto first = rounds_++ * most_gone_in_round;
    for (auto* subjects : {&sorted.unwanted, &sorted.doubtful})
        if (const auto size = subjects->size(); size > 0)
            std::ranges::rotate(*subjects, subjects->begin() + static_cast<std::ptrdiff_t>(first % size));
    return sorted;
}

bool ListenerRecords::is_full(const std::string& policy) const {
    const auto count = counts_.find(policy);
    return count != counts_.end() && count->second >= most_of_policy;
}

/// Somebody has it open who is under another policy now, or none, or was let go.
bool ListenerRecords::has_left(const planner::ListenerCpu& listener, const std::string& policy) const {
    const auto* process = parts_.tasks.find(listener.process);
    if (process == nullptr) return inventory::read_parent(parts_.root, listener.process).has_value();
    return process->is_elsewhere || parts_.releases.process(process->id) ||
           parts_.current->policy(process->policy).name != policy;
}

void ListenerRecords::settle(const planner::Subject& subject, Clock::time_point now) {
    const auto* listener = std::get_if<planner::ListenerCpu>(&subject);
    const auto record = parts_.journal.find(subject);
    if (listener == nullptr || !record) return;
    if (decided_.contains(listener->cookie) || has_left(*listener, record->policy)) {
        if (doubts_.see_gone(subject, now)) restore(subject);
        return;
    }
    drop_if_gone(subject, now);
}

void ListenerRecords::drop_if_gone(const planner::Subject& subject, Clock::time_point now) {
    if (gone_.rests(subject, now)) return;
    if (++looked_ > most_gone_in_round) {
        doubts_.keep(subject);
        unreached_.keep(subject);
        return gone_.keep(subject);
    }
    const auto present = parts_.enforcer.present(subject);
    if (present && *present) {
        const auto& listener = std::get<planner::ListenerCpu>(subject); // handed on to who is under no policy
        const bool is_alive = inventory::read_parent(parts_.root, listener.process).has_value();
        if (!is_alive && doubts_.see_gone(subject, now)) restore(subject);
        return;
    }
    if (!present) {
        doubts_.keep(subject);
        if (present.error().code != EOWNERDEAD) gone_.keep(subject); // it listens
        if (may_be_reached_soon(present.error().code)) unreached_.see(subject);
        return;
    }
    if (!gone_.see_gone(subject, now)) return;
    if (const auto done = parts_.executor.gone(subject); !done) parts_.log.error(done.error().to_string());
}

void ListenerRecords::restore(const planner::Subject& subject) {
    const auto record = parts_.journal.find(subject);
    if (!record) return;
    if (parts_.current->keeps_after_removal(record->policy)) {
        if (const auto done = parts_.journal.settle(subject, state::Parting::kept); !done)
            parts_.log.error(done.error().to_string());
        return;
    }
    if (unreached_.rests(subject, record->policy)) return;
    auto carried = parts_.executor.restore(subject, parts_.current.placements().online);
    if (may_be_reached_soon(carried.applied.code) &&
        !unreached_.see_not_put_back(subject, record->policy, Clock::now()))
        std::erase_if(carried.notices,
                      [](const auto& notice) { return notice.kind == enforcer::Notice::Kind::not_put_back; });
    log_notices(parts_.log, carried.notices);
    parts_.placed.carried({subject, {}, record->original, "", planner::Restored::unwanted, true},
                          carried.applied, record);
}

std::optional<ListenerRecords::Clock::time_point> ListenerRecords::end_round() {
    const auto now = Clock::now();
    looked_ = 0;
    gone_.end_round();
    doubts_.end_round();
    const auto next = unreached_.end_round(now);
    if (!doubts_.are_some_recent(now)) return next;
    return std::min(next.value_or(Clock::time_point::max()), now + between_looks);
}

} // namespace affinityd::app
