// SPDX-License-Identifier: Apache-2.0
#include "app/json.hpp"

#include "planner/flow_counts.hpp"

namespace affinityd::app {

namespace {

using nlohmann::json;
using planner::ThreadPlan;

const char* state_name(ThreadPlan::State state) {
    switch (state) {
    case ThreadPlan::State::unwanted:
        return "unwanted";
    case ThreadPlan::State::in_place:
        return "in place";
    case ThreadPlan::State::changes:
        return "refused";
    case ThreadPlan::State::left_alone:
        return "left alone";
    case ThreadPlan::State::yielded:
        return "yielded";
    case ThreadPlan::State::outside:
        return "outside its cpuset";
    case ThreadPlan::State::immovable:
        return "immovable";
    }
    return "unknown";
}

struct SubjectJson {
    json operator()(const planner::TaskMask& mask) const {
        return {{"kind", "task"}, {"pid", mask.pid}, {"tid", mask.task.tid}, {"comm", mask.comm}};
    }
    json operator()(const planner::IrqMask& mask) const {
        return {{"kind", "irq"}, {"irq", mask.irq}, {"label", mask.label}, {"device", mask.device}};
    }
    json operator()(const planner::SteeringMask& mask) const {
        return {{"kind", "steering"}, {"nic", mask.nic}, {"queue", mask.queue}};
    }
    json operator()(const planner::UnitCpuset& cpuset) const {
        return {{"kind", "unit"}, {"unit", cpuset.unit}};
    }
};

} // namespace

std::string dump(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

json to_json(const planner::Action& action) {
    json value = std::visit(SubjectJson{}, action.subject);
    value["from"] = planner::mask_text(action.subject, action.from);
    value["to"] = planner::mask_text(action.subject, action.to);
    value["policy"] = action.policy;
    value["reason"] = action.reason;
    value["restore"] = action.restore;
    return value;
}

json to_json(const planner::Problem& problem) {
    return {{"policy", problem.policy}, {"subject", problem.subject}, {"message", problem.message}};
}

json to_json(const KnownThread& thread) {
    json value{{"tid", thread.id.tid},
               {"comm", thread.comm},
               {"state", state_name(thread.state)},
               {"wanted", thread.wanted.to_list()},
               {"present", thread.present.to_list()}};
    if (thread.outcome) value["outcome"] = enforcer::to_string(*thread.outcome);
    if (thread.truce.corrections() > 1) value["corrections"] = thread.truce.corrections();
    if (thread.truce.holds(Truce::Clock::now())) value["state"] = "fought over";
    return value;
}

json to_json(const planner::QueueTarget& target, const state::Journal& journal) {
    json value = std::visit(SubjectJson{}, target.subject);
    value["nic"] = target.nic;
    value["policy"] = target.policy;
    value["wanted"] = planner::mask_text(target.subject, target.wanted);
    value["present"] = planner::mask_text(target.subject, target.present);
    value["reason"] = target.reason;
    if (const auto* held = journal.find(target.subject))
        value["original"] = planner::mask_text(target.subject, held->original);
    return value;
}

} // namespace affinityd::app
