// SPDX-License-Identifier: Apache-2.0
#include "status/answer_text.hpp"

#include "status/json.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace affinityd::status {

namespace {

using nlohmann::json;

constexpr std::string_view end_of_process = "]}";

template <class Values>
json entries_of(const Values& values) {
    json list = json::array();
    for (const auto& value : values)
        list.push_back(to_json(value));
    return list;
}

/// The value without what only its owner may read: names, executables, command lines, ports.
json redacted(json value) {
    if (value.is_object())
        for (auto& [key, member] : value.items())
            member = key == "comm" || key == "found" ? json("") : redacted(std::move(member));
    if (value.is_array())
        for (auto& entry : value)
            entry = redacted(std::move(entry));
    return value;
}

/// Names of tasks whose owner is not known are for root only.
Overview without_names(Overview overview) {
    const auto clear = [](planner::Subject& subject) {
        if (auto* task = std::get_if<planner::TaskMask>(&subject)) task->comm.clear();
    };
    for (auto& [subject, why] : overview.counters.refused)
        clear(subject);
    return overview;
}

/// With the separator in one piece, so that a list of one owner's is one part.
void add_owned(OwnedText& text, uid_t owner, const std::string& separator, const json& value) {
    text.add(owner, separator + dump(value), separator + dump(redacted(value)));
}

} // namespace

void AnswerText::begin_list(std::string_view key) {
    begin_member(key);
    text_.add("[");
    in_list_ = is_first_ = true;
}

std::string AnswerText::separator() { return std::exchange(is_first_, false) ? "" : ","; }

void AnswerText::begin_process(const ProcessStatus& process) {
    const auto before = separator();
    const json value = to_json(process);
    // "threads" comes last, since keys are in the order of their bytes: its list is left open.
    const auto open = [](std::string text) { return text.substr(0, text.size() - end_of_process.size()); };
    text_.add(process.owner, before + open(dump(value)), before + open(dump(redacted(value))));
    is_first_thread_ = true;
}

void AnswerText::add(const ThreadStatus& thread, uid_t owner) {
    add_owned(text_, owner, std::exchange(is_first_thread_, false) ? "" : ",", to_json(thread));
}

void AnswerText::end_process() { text_.add(std::string(end_of_process)); }

void AnswerText::add(const QueueStatus& queue) { text_.add(separator() + dump(to_json(queue))); }

void AnswerText::add(const planner::Action& action, uid_t owner) {
    const auto value = to_json(action);
    if (std::holds_alternative<planner::TaskMask>(action.subject))
        add_owned(text_, owner, separator(), value);
    else
        text_.add(separator() + dump(value));
}

void AnswerText::add(const ThreadExplanation& thread, const ProcessExplanation& process) {
    add_owned(text_, process.owner, separator(), to_json(thread, process));
}

void AnswerText::begin_member(std::string_view key) {
    text_.add(in_list_ ? "]," : is_begun_ ? "," : "{");
    text_.add('"' + std::string(key) + "\":");
    in_list_ = false;
    is_begun_ = true;
}

void AnswerText::add_member(std::string_view key, const std::string& value) {
    begin_member(key);
    text_.add(value);
}

void AnswerText::add_member(std::string_view key, uid_t owner, const std::string& full,
                            const std::string& redacted) {
    begin_member(key);
    text_.add(owner, full, redacted);
}

OwnedText AnswerText::finish() {
    text_.add(in_list_ ? "]}" : is_begun_ ? "}" : "{}");
    return std::move(text_);
}

OwnedText finish(AnswerText text, const Overview& overview, const std::string& costs,
                 const std::string& measurement) {
    const json value = to_json(overview);
    const json redacted = to_json(without_names(overview));
    for (const auto& [key, member] : value.items())
        text.add_member(key, OwnedText::no_owner, dump(member), dump(redacted[key]));
    text.add_member("costs", costs);
    text.add_member("measurement", measurement);
    return text.finish();
}

OwnedText finish_plan(AnswerText text, const std::vector<planner::Problem>& problems,
                      const planner::Crowding* crowding) {
    text.add_member("problems", dump(entries_of(problems)));
    text.add_member("balance", dump(crowding == nullptr ? json(nullptr) : to_json(*crowding)));
    return text.finish();
}

OwnedText finish(AnswerText text, const ProcessExplanation& process) {
    const json value = to_json(process);
    const json short_value = redacted(value);
    for (const auto& [key, member] : value.items())
        text.add_member(key, process.owner, dump(member), dump(short_value[key]));
    return text.finish();
}

OwnedText answer(const std::string& subject, const std::vector<QueueStatus>& queues,
                 const std::string& note) {
    json value{{"subject", subject}, {"queues", entries_of(queues)}};
    if (!note.empty()) value["note"] = note;
    return OwnedText(dump(value));
}

} // namespace affinityd::status
