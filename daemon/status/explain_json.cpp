// SPDX-License-Identifier: Apache-2.0
#include "status/json.hpp"

#include <nlohmann/json.hpp>

namespace affinityd::status {

namespace {

using nlohmann::json;
using State = planner::ThreadPlan::State;

std::string to_text(const policy::Position& at) { return at.file + ":" + std::to_string(at.line); }

json considered_json(const Considered& considered) {
    const auto& verdict = considered.verdict;
    json value{{"policy", considered.policy}, {"at", to_text(considered.at)}, {"matched", verdict.matched}};
    if (verdict.matched) return value;
    value["field"] = verdict.field;
    value["wanted"] = verdict.wanted;
    value["found"] = verdict.found;
    return value;
}

/// Of a thread that its policy does not touch.
std::string text_of(const ThreadExplanation& thread) {
    using planner::NoPlace;
    const auto& untouched = thread.plan.untouched;
    if (untouched == NoPlace::model) return "left alone: its policy says affinity: none or irq";
    if (untouched == NoPlace::inactive) return "left alone: its policy cannot be carried out on this machine";
    if (untouched == NoPlace::leave)
        return (thread.rule ? "thread rule " + std::to_string(*thread.rule + 1) : "a thread rule") +
               ": leave";
    return "left alone: its policy says prior: keep, and it has a mask of its own";
}

std::string reason_of(const ThreadExplanation& thread, const ProcessExplanation& process) {
    if (thread.thread.is_immovable()) return "a kernel thread that the kernel does not let move";
    if (process.released) return "released by hand";
    if (thread.plan.kept_off) return planner::to_string(*thread.plan.kept_off, "");
    if (thread.plan.state == State::outside)
        return "its cpuset (" + thread.cpuset.to_list() + ") has none of the policy's CPUs";
    switch (thread.plan.state) {
    case State::left_alone:
        return text_of(thread);
    case State::yielded:
        return "left alone: another program changed it after us, and the policy gives way (drift)";
    case State::foreign:
        return "left alone: no policy wants it, and its mask is not ours";
    case State::put_off:
        return "left alone for a while: another program keeps changing it";
    default:
        return thread.reason ? planner::to_string(*thread.reason, process.policy) : "";
    }
}

/// What it has asked for itself.
std::string joined_text(const planner::Joined& joined) {
    std::string text;
    if (!joined.slot.empty()) text = "it joined the slot " + joined.slot;
    if (joined.serves)
        text += std::string(text.empty() ? "it" : ", and") + " asked for where its packets arrive";
    return text;
}

} // namespace

json to_json(const ThreadExplanation& thread, const ProcessExplanation& process) {
    json value{{"tid", thread.thread.id.tid},
               {"comm", thread.thread.comm},
               {"present", thread.thread.allowed.to_list()}};
    if (thread.plan.target && !process.released) value["wanted"] = thread.plan.target->mask.to_list();
    auto reason = reason_of(thread, process);
    if (thread.joined) {
        value["joined"] = joined_text(*thread.joined);
        reason += (reason.empty() ? "" : "; ") + joined_text(*thread.joined);
    }
    if (!reason.empty()) value["reason"] = std::move(reason);
    if (thread.decided_by) value["decided_by"] = to_text(*thread.decided_by);
    if (const auto& action = thread.plan.action)
        value["would_change"] = planner::to_string(action->reason, action->policy);
    if (thread.original) value["original"] = thread.original->to_string();
    return value;
}

json to_json(const ProcessExplanation& process) {
    json considered = json::array();
    for (const auto& one : process.considered)
        considered.push_back(considered_json(one));
    json means = nullptr;
    if (!process.fenced_unit.empty())
        means = {{"cpuset_of", process.fenced_unit}, {"state", process.fence_state}};
    json value{{"pid", process.pid},
               {"comm", process.comm},
               {"means", std::move(means)},
               {"released", process.released},
               {"policy", process.policy.empty() ? json(nullptr) : json(process.policy)},
               {"considered", std::move(considered)},
               {"nics", process.nics}};
    if (process.kept_off) value["kept_off"] = planner::to_string(*process.kept_off, "");
    if (!process.nics_note.empty()) value["nics_note"] = process.nics_note;
    for (const auto& listener : process.accepting.listeners)
        value["listeners"].push_back(
            {{"port", listener.port}, {"thread", listener.thread}, {"cpu", listener.cpu}});
    if (!process.accepting.left.empty()) value["not_steered"] = to_json(process.accepting.left);
    if (process.accepting.has_none) value["no_listener"] = true;
    if (!process.accepting.pinned.empty()) value["pinned"] = process.accepting.pinned;
    if (!process.receiving.tasks.empty()) value["at_arrivals"] = to_json(process.receiving.tasks);
    if (process.receiving.local) value["local"] = to_json(*process.receiving.local);
    for (const auto& place : process.receiving.arrivals)
        value["arrivals"].push_back(
            {{"cpu", place.cpu}, {"samples", place.reads}, {"sources", place.sources}});
    return value;
}

} // namespace affinityd::status
