// SPDX-License-Identifier: Apache-2.0
#include "status/json.hpp"

#include "base/escape.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include <fmt/format.h>

namespace affinityd::status {

namespace {

using nlohmann::json;
using State = planner::ThreadPlan::State;

/// How each ThreadPlan::State, in its order, is called after a pass: a change that is still wanted was
/// refused.
constexpr std::array thread_states{"unwanted",   "in place", "refused", "fought over",
                                   "left alone", "yielded",  "yielded", "outside its cpuset",
                                   "immovable",  "kept off"};

template <class Values, class Form>
json list_of(const Values& values, Form form) {
    json list = json::array();
    for (const auto& value : values)
        list.push_back(form(value));
    return list;
}

template <class Values>
json list_of(const Values& values) {
    return list_of(values, [](const auto& value) { return to_json(value); });
}

/// In the order of QueueStatus::State.
constexpr std::array queue_states{"in place",     "not read",    "not in place",
                                  "would change", "fought over", "on another CPU",
                                  "refused",      "immovable",   "decided by another policy",
                                  "released"};

constexpr std::array severities{"note", "settling", "attention"};

struct SubjectForm {
    json operator()(const planner::TaskMask& mask) const {
        return {{"kind", "task"}, {"pid", mask.pid}, {"tid", mask.task.tid}, {"comm", mask.comm}};
    }
    json operator()(const planner::IrqMask& mask) const {
        return {{"kind", "irq"}, {"irq", mask.irq}, {"label", mask.label}, {"device", mask.device}};
    }
    json operator()(const planner::SteeringMask& map) const {
        const char* direction = map.direction == machine::Direction::rx ? "rx-" : "tx-";
        return {{"kind", "steering"}, {"nic", map.nic}, {"queue", direction + std::to_string(map.queue)}};
    }
    json operator()(const planner::FlowTable& table) const {
        const auto queue =
            table.is_machine() ? "flow-entries" : "rx-" + std::to_string(table.queue) + "-flows";
        return {{"kind", "steering"}, {"nic", table.is_machine() ? "machine" : table.nic}, {"queue", queue}};
    }
    json operator()(const planner::UnitCpuset& cpuset) const {
        return {{"kind", "unit"}, {"unit", cpuset.unit}};
    }
    json operator()(const planner::KernelMask& mask) const {
        return {
            {"kind", "kernel"}, {"nic", "machine"}, {"queue", machine::to_string(machine::Subject(mask))}};
    }
};

/// The queue of the interface that this is one of; no value: of none, or that is not known.
std::optional<unsigned> queue_number(const QueueStatus& queue) {
    if (queue.reason.queue) return queue.reason.queue;
    if (const auto* map = std::get_if<planner::SteeringMask>(&queue.subject)) return map->queue;
    const auto* table = std::get_if<planner::FlowTable>(&queue.subject);
    return table == nullptr || table->is_machine() ? std::nullopt : std::optional(table->queue);
}

std::string iso_time(std::chrono::system_clock::time_point when) {
    const auto seconds = std::chrono::system_clock::to_time_t(when);
    tm parts{};
    ::gmtime_r(&seconds, &parts);
    std::array<char, 32> text{};
    const auto length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return {text.data(), length};
}

json unit_json(const UnitStatus& unit) {
    return {{"unit", unit.unit},
            {"policy", unit.policy},
            {"wanted", unit.wanted.to_list()},
            {"state", unit.state}};
}

json writer_json(const OtherWriter& writer) {
    return {{"name", writer.name},
            {"where", writer.where},
            {"note", writer.note},
            {"keeps_off", writer.keeps_off}};
}

json flood_json(const FloodStatus& flood) {
    return {{"pid", flood.pid},
            {"uid", flood.uid},
            {"user", flood.user},
            {"events_per_minute", flood.events_a_minute},
            {"looked_at_every_seconds", static_cast<double>(flood.pause.count()) / 1000},
            {"muted", flood.is_muted}};
}

json fault_json(const FileFault& fault) {
    return {{"file", fault.at.file},  {"line", fault.at.line},    {"column", fault.at.column},
            {"policy", fault.policy}, {"message", fault.message}, {"in_force", fault.in_force},
            {"note", fault.note}};
}

json load_json(const LoadStatus& load) {
    return {{"at", iso_time(load.at)},
            {"ok", load.refused.empty() && load.faults.empty()},
            {"refused", load.refused},
            {"faults", list_of(load.faults, fault_json)}};
}

json measure_json(const policy::Settings& settings) {
    const auto& measure = settings.measure;
    return {{"interval_seconds", measure.interval.count()},
            {"target", measure.target},
            {"settings", settings.config.empty() ? policy::standard_settings : settings.config}};
}

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

/// The reason for a thread that its policy does not touch.
std::string text_of(const ThreadExplanation& thread) {
    using planner::NoPlace;
    const auto& untouched = thread.plan.untouched;
    if (untouched == NoPlace::model) return "left alone: its affinity is none or irq, perhaps by auto";
    if (untouched == NoPlace::inactive) return "left alone: its policy cannot be carried out on this machine";
    if (untouched == NoPlace::leave)
        return (thread.rule ? "thread rule " + std::to_string(*thread.rule + 1) : "a thread rule") +
               ": leave";
    return "left alone: its policy says prior: keep, and it has a mask of its own";
}

std::string reason_of(const ThreadExplanation& thread, const ProcessExplanation& process) {
    if (thread.thread.is_immovable()) return "a kernel thread that the kernel does not let move";
    if (process.released) return "released by hand";
    if (thread.plan.kept_off) return planner::Reason(*thread.plan.kept_off).text;
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
        return thread.reason;
    }
}

/// A thread's own request, in words.
std::string joined_text(const planner::Joined& joined) {
    std::string text;
    if (!joined.slot.empty()) text = "it joined the slot " + joined.slot;
    if (joined.serves)
        text += std::string(text.empty() ? "it" : ", and") + " asked for where its packets arrive";
    return text;
}

json latencies_json(const Latencies& latencies) {
    json buckets = json::array();
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < latencies.counts.size(); ++i) {
        count += latencies.counts[i];
        const bool is_last = i == Latencies::bounds.size();
        buckets.push_back(
            {{"up_to_seconds", is_last ? json(nullptr) : json(Latencies::bounds[i])}, {"count", count}});
    }
    return {{"count", count}, {"seconds", latencies.seconds}, {"buckets", std::move(buckets)}};
}

json number(const std::optional<double>& value) { return value ? json(*value) : json(nullptr); }

json past_json(const accounting::PastCost& past) {
    return {{"model", past.model},
            {"ended_at", past.ended_at},
            {"bytes", past.bytes},
            {"cpu_seconds", past.cpu_seconds},
            {"cpu_seconds_per_gb", number(accounting::per_gigabyte(past.cpu_seconds, past.bytes))}};
}

json cost_json(const accounting::PolicyCost& cost) {
    auto nics = list_of(cost.nics, [](const auto& nic) {
        return json{{"nic", nic.nic}, {"bytes", nic.bytes}, {"shared", nic.shared}};
    });
    return {{"policy", cost.policy},
            {"model", cost.model},
            {"seconds", cost.seconds},
            {"nics", std::move(nics)},
            {"bytes", cost.bytes},
            {"cpu_seconds", cost.cpu_seconds},
            {"cpu_seconds_per_gb", number(accounting::per_gigabyte(cost.cpu_seconds, cost.bytes))},
            {"before", cost.before ? past_json(*cost.before) : json(nullptr)}};
}

json trend_json(const measure::TrendReport& trend) {
    return {{"direction", measure::to_string(trend.trend)},
            {"median", trend.median},
            {"low", trend.low},
            {"high", trend.high},
            {"change", trend.change}};
}

json record_json(const state::MeasurementRecord& record) {
    json value{{"id", record.id},
               {"time", record.time},
               {"kind", record.kind},
               {"outcome", record.outcome},
               {"path", record.path},
               {"model", record.model},
               {"policies", record.policies},
               {"seconds", record.seconds},
               {"bytes", record.bytes},
               {"bits_per_second", record.bits_per_second},
               {"cpu_seconds", record.cpu_seconds}};
    if (record.kind == "ttcp" && !record.path.empty())
        value["touches_nic_interrupts"] = accounting::touches_nic_interrupts(record);
    if (!record.reason.empty()) value["reason"] = record.reason;
    if (record.ghz_per_gbps) value["ghz_per_gbps"] = *record.ghz_per_gbps;
    return value;
}

} // namespace

std::string dump(const json& value) {
    return escaped_json(value.dump(-1, ' ', false, json::error_handler_t::replace));
}

json to_json(const planner::Subject& subject) { return std::visit(SubjectForm{}, subject); }

json to_json(const planner::Action& action) {
    json value = to_json(action.subject);
    value["from"] = action.from.to_string();
    value["to"] = action.to.to_string();
    value["policy"] = action.policy;
    value["reason"] = action.reason.text;
    value["restore"] = action.restore;
    return value;
}

json to_json(const planner::Problem& problem) {
    return {{"policy", problem.policy},
            {"subject", problem.subject},
            {"message", problem.message},
            {"hint", problem.hint}};
}

json to_json(const Finding& finding, bool with_names) {
    auto told = finding.problem;
    const auto comm = " (" + finding.comm + ")";
    for (auto* text : {&told.subject, &told.message})
        if (const auto at = text->find(comm); !with_names && !finding.comm.empty() && at != std::string::npos)
            text->erase(at, comm.size());
    json value = to_json(told);
    value["name"] = finding.name;
    value["kind"] = finding.id;
    value["severity"] =
        finding.until ? "acknowledged" : severities.at(static_cast<std::size_t>(finding.severity));
    if (finding.until) value["until"] = iso_time(*finding.until);
    value["since"] = finding.since == Finding::Time{} ? json(nullptr) : json(iso_time(finding.since));
    return value;
}

std::string_view state_of(const ThreadStatus& thread) {
    return thread.would_change     ? "would change"
           : thread.is_fought_over ? "fought over"
           : thread.has_drifted    ? "drifted"
                                   : thread_states.at(static_cast<std::size_t>(thread.state));
}

std::string_view state_of(const QueueStatus& queue) {
    return queue_states.at(static_cast<std::size_t>(queue.state));
}

json to_json(const ThreadStatus& thread) {
    json value{{"tid", thread.tid},
               {"comm", thread.comm},
               {"state", state_of(thread)},
               {"wanted", thread.wanted.to_list()},
               {"present", thread.present.to_list()}};
    if (thread.outcome) value["outcome"] = enforcer::to_string(*thread.outcome);
    if (thread.corrections > 1) value["corrections"] = thread.corrections;
    return value;
}

json to_json(const ProcessStatus& process) {
    json value{
        {"pid", process.pid}, {"comm", process.comm}, {"policy", process.policy}, {"nics", process.nics}};
    if (!process.nics_note.empty()) value["nics_note"] = process.nics_note;
    if (!process.memory_state.empty())
        value["memory"] = {{"nodes", process.memory_nodes}, {"state", process.memory_state}};
    return value;
}

json to_json(const LanesStatus& lanes) {
    return {{"nics", lanes.nics},
            {"spares", lanes.spares},
            {"cores", list_of(lanes.cores, [](const CpuSet& core) { return json(core.to_list()); })}};
}

json shares_json(const locality::NearShares& shares) {
    return {{"cpu", shares.cpu}, {"core", shares.core}, {"llc", shares.llc}, {"node", shares.node}};
}

json to_json(const LocalStatus& local) {
    return {{"samples", local.samples},
            {"unknown", local.unknown},
            {"same", shares_json(local.same)},
            {"chance", shares_json(local.chance)}};
}

json to_json(const PolicyStatus& policy) {
    json value{{"name", policy.name},
               {"description", policy.description},
               {"file", policy.file},
               {"affinity", to_string(policy.model)},
               {"cpus", policy.cpus.to_list()},
               {"active", policy.active && !policy.released},
               {"released", policy.released},
               {"nics", policy.nics},
               {"lanes", list_of(policy.lanes)},
               {"processes", policy.held.processes},
               {"threads", policy.held.threads},
               {"threads_wanted", policy.held.threads_wanted},
               {"threads_in_place", policy.held.threads_in_place},
               {"threads_drifted", policy.held.threads_drifted},
               {"drift_put_right", policy.held.drift_put_right}};
    if (!policy.note.empty()) value["note"] = policy.note;
    if (!policy.automatic.empty()) value["auto"] = policy.automatic;
    if (const auto& joined = policy.held.joined; !joined.slots.empty())
        value["joined"] = {{"threads", joined.threads}, {"slots", joined.slots}};
    if (policy.packets.local) value["local"] = to_json(*policy.packets.local);
    if (policy.packets.steer) {
        value["steer"] = {{"listeners", policy.packets.steer->steered},
                          {"left", to_json(policy.packets.steer->left)}};
    }
    if (const auto& accepts = policy.packets.accepts; accepts.workers > 0)
        value["accepts"] = {{"workers", accepts.workers}, {"least", accepts.least}, {"most", accepts.most}};
    if (!policy.packets.tasks.empty()) value["at_arrivals"] = to_json(policy.packets.tasks);
    if (const auto& found = policy.interruptions) {
        const auto& [devices, timers, calls, others] = found->counts;
        value["interruptions"] = {{"seconds", found->length.count()},
                                  {"device", devices},
                                  {"timer", timers},
                                  {"call", calls},
                                  {"other", others}};
    }
    return value;
}

json to_json(const TasksAtArrivals& tasks) {
    return list_of(tasks, [](const auto& one) {
        return json{{"tasks", one.second},
                    {"is_there", one.first == planner::AtArrivals::here},
                    {"why", planner::to_string(one.first)}};
    });
}

json to_json(const NotSteered& listeners) {
    return list_of(listeners, [](const auto& one) {
        return json{
            {"listeners", one.second}, {"state", "left alone"}, {"why", planner::to_string(one.first)}};
    });
}

json to_json(const QueueStatus& queue) {
    json value = to_json(queue.subject);
    value["nic"] = queue.nic;
    value["policy"] = queue.policy;
    value["wanted"] = queue.wanted.to_string();
    value["present"] = queue.present.to_string();
    value["state"] = state_of(queue);
    if (const auto number = queue_number(queue)) value["queue_number"] = *number;
    value["reason"] = queue.reason.text;
    if (queue.original) value["original"] = queue.original->to_string();
    if (!queue.note.empty()) value["note"] = queue.note;
    if (!queue.shared_with.empty()) value["shared_with"] = queue.shared_with;
    if (queue.is_kept_off) value["kept_off"] = true;
    return value;
}

json to_json(const planner::Crowding& crowding) {
    const auto cpus = [](planner::Weight load) {
        return std::round(static_cast<double>(load) * 1000 / static_cast<double>(planner::one_cpu)) / 1000;
    };
    json value{{"busiest_core", crowding.core}, {"busiest_load", cpus(crowding.load)},
               {"free_core", crowding.free},    {"free_load", cpus(crowding.free_load)},
               {"tasks", json::array()},        {"text", planner::to_string(crowding)}};
    value["tasks"].push_back({{"tid", crowding.task.tid}, {"policy", crowding.policy}});
    if (crowding.mate != TaskId{})
        value["tasks"].push_back({{"tid", crowding.mate.tid}, {"policy", crowding.mate_policy}});
    return value;
}

json interval_json(const std::optional<measure::Interval>& interval) {
    if (!interval) return nullptr;
    return {{"estimate", interval->estimate}, {"low", interval->low}, {"high", interval->high}};
}

json figure_json(const planner::Figure& figure) {
    auto change = interval_json(figure.change);
    if (figure.change)
        change["verdict"] = !figure.change->excludes_zero() ? "no difference shown"
                            : figure.change->high < 0       ? "less"
                                                            : "more";
    return {{"name", figure.name},
            {"unit", figure.unit},
            {"before", interval_json(figure.before)},
            {"after", interval_json(figure.after)},
            {"change", std::move(change)}};
}

json judgement_json(const planner::Judgement& judgement) {
    return {{"verdict", planner::to_string(judgement.verdict)},
            {"sentence", judgement.sentence},
            {"figures", list_of(judgement.figures, figure_json)}};
}

json trial_json(const TrialStatus& trial) {
    const auto seconds = [](std::chrono::milliseconds time) {
        return std::chrono::ceil<std::chrono::seconds>(time).count();
    };
    json value = judgement_json(trial.judgement);
    if (!trial.outcome.empty()) value["outcome"] = trial.outcome;
    value.update({{"policy", trial.policy},
                  {"file", trial.file},
                  {"replaces", trial.replaces.empty() ? json(nullptr) : json(trial.replaces)},
                  {"own_text", std::to_string(trial.own_text)},
                  {"seconds", seconds(trial.length)},
                  {"seconds_left", seconds(trial.left)},
                  {"seconds_until_placed", seconds(trial.until_placed)}});
    return value;
}

json acknowledged_json(const Acknowledged& problems) {
    json value = json::object();
    for (const auto& [name, end] : problems)
        value[name] = iso_time(end);
    return value;
}

json problems_json(const std::vector<Finding>& problems, bool with_names = true) {
    return list_of(problems, [&](const auto& problem) { return to_json(problem, with_names); });
}

json refused_json(const Overview& overview, bool with_names = true) {
    json refused = json::object();
    for (auto [subject, why] : overview.refused) {
        if (auto* task = std::get_if<planner::TaskMask>(&subject); task != nullptr && !with_names)
            task->comm.clear();
        refused[machine::to_string(subject)] = why;
    }
    return refused;
}

json to_json(const Overview& overview) {
    return {{"version", AFFINITYD_VERSION},
            {"pid", overview.pid},
            {"dry_run", overview.dry_run},
            {"started_at", iso_time(overview.started_at)},
            {"loaded_at", iso_time(overview.loaded_at)},
            {"load", load_json(overview.load)},
            {"policy_folders", overview.settings.policy_folders},
            {"online", overview.online.to_list()},
            {"journal", overview.journal},
            {"reconciles", overview.passes},
            {"reconciling", overview.passing},
            {"last_pass_at", overview.last_pass.time_since_epoch().count() == 0
                                 ? json(nullptr)
                                 : json(iso_time(overview.last_pass))},
            {"last_pass_seconds", overview.pass_length.count()},
            {"reconcile_seconds", overview.settings.reconcile_interval.count()},
            {"measure", measure_json(overview.settings)},
            {"fast_path", overview.by_event},
            {"event_to_pinned", latencies_json(overview.latencies)},
            {"events_lost", overview.events_lost},
            {"refused", refused_json(overview)},
            {"outcomes", overview.outcomes},
            {"policies", list_of(overview.policies)},
            {"released_processes", overview.released},
            {"health", overview.health == Severity::note
                           ? "ok"
                           : severities.at(static_cast<std::size_t>(overview.health))},
            {"problems", problems_json(overview.problems)},
            {"notes", problems_json(overview.notes)},
            {"acknowledged", acknowledged_json(overview.acknowledged)},
            {"balance", overview.crowding ? to_json(*overview.crowding) : json(nullptr)},
            {"units", list_of(overview.units, unit_json)},
            {"other_writers", list_of(overview.other_writers, writer_json)},
            {"floods", list_of(overview.floods, flood_json)},
            {"trials", list_of(overview.trials, trial_json)}};
}

std::optional<policy::Position> decided_by(const policy::Policy& policy, const ThreadExplanation& thread) {
    if (thread.thread.is_immovable()) return std::nullopt;
    const auto& plan = thread.plan;
    const bool is_the_rules =
        plan.untouched == planner::NoPlace::leave || plan.untouched == planner::NoPlace::outside;
    const auto rule =
        plan.target ? plan.target->distribution.rule : (is_the_rules && thread.rule ? *thread.rule + 1 : 0);
    return rule == 0 ? policy.match_at : policy.threads[rule - 1].at;
}

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
    if (const auto& action = thread.plan.action) value["would_change"] = action->reason.text;
    if (thread.original) value["original"] = thread.original->to_string();
    return value;
}

json to_json(const ProcessExplanation& process) {
    json means = nullptr;
    if (!process.fenced_unit.empty())
        means = {{"cpuset_of", process.fenced_unit}, {"state", process.fence_state}};
    json value{{"pid", process.pid},
               {"comm", process.comm},
               {"means", std::move(means)},
               {"released", process.released},
               {"policy", process.policy.empty() ? json(nullptr) : json(process.policy)},
               {"considered", list_of(process.considered, considered_json)},
               {"nics", process.nics}};
    if (process.trial_left)
        value["trial_seconds_left"] = std::chrono::ceil<std::chrono::seconds>(*process.trial_left).count();
    if (!process.automatic.empty()) value["auto"] = process.automatic;
    if (process.kept_off) value["kept_off"] = planner::Reason(*process.kept_off).text;
    if (!process.nics_note.empty()) value["nics_note"] = process.nics_note;
    if (!process.way.empty()) value["way"] = process.way;
    for (const auto& listener : process.accepting.listeners)
        value["listeners"].push_back({{"port", listener.port},
                                      {"protocol", listener.is_datagram ? "udp" : "tcp"},
                                      {"thread", listener.thread},
                                      {"cpu", listener.cpu}});
    if (!process.accepting.left.empty()) value["not_steered"] = to_json(process.accepting.left);
    const auto add_handed = [&](const char* key, const auto& handed) {
        if (handed)
            value[key] = {{"to_lane", handed->to_lane},
                          {"to_next", handed->to_next},
                          {"to_kernel", handed->to_kernel},
                          {"full", handed->full}};
    };
    add_handed("handed", process.accepting.handed);
    add_handed("handed_datagrams", process.accepting.datagrams);
    if (!process.accepting.pinned.empty()) value["pinned"] = process.accepting.pinned;
    if (!process.receiving.tasks.empty()) value["at_arrivals"] = to_json(process.receiving.tasks);
    if (process.receiving.local) value["local"] = to_json(*process.receiving.local);
    for (const auto& place : process.receiving.arrivals)
        value["arrivals"].push_back(
            {{"cpu", place.cpu}, {"samples", place.reads}, {"sources", place.sources}});
    return value;
}

std::string to_text(const accounting::CostReport& report) { return dump(list_of(report, cost_json)); }

std::string to_text(const std::optional<accounting::MeasurementReport>& report) {
    if (!report) return "null";
    return dump({{"last", record_json(report->last)},
                 {"summary", report->summary},
                 {"runs", report->runs},
                 {"trend", trend_json(report->trend)}});
}

std::string to_text(const accounting::HistoryReport& report) {
    const auto path_json = [](const auto& path) {
        auto value = trend_json(path.trend);
        value["kind"] = path.kind;
        value["path"] = path.path;
        return value;
    };
    json value{{"records", list_of(report.records, record_json)},
               {"trends", list_of(report.trends, path_json)},
               {"kept", report.kept}};
    if (!report.fault.empty()) value["fault"] = report.fault;
    return dump(value);
}

std::string to_text(const LocalStatus& local) { return dump(to_json(local)); }
std::string to_text(const Acknowledged& problems) { return dump(acknowledged_json(problems)); }

state::MeasurementRecord record_of(const std::string& policy, const planner::AutoChoice& choice) {
    state::MeasurementRecord record;
    record.time = choice.time;
    record.kind = "auto";
    record.outcome = "done";
    record.reason = choice.why;
    record.model = to_string(choice.candidate);
    record.policies = policy;
    record.detail = dump({{"choice", record.model},
                          {"text_hash", std::to_string(choice.basis.text_hash)},
                          {"machine", std::to_string(choice.basis.machine)},
                          {"bytes_per_second", choice.basis.bytes_per_second},
                          {"confirmed", choice.confirmed}});
    return record;
}

std::optional<planner::AutoChoice> read_choice(const state::MeasurementRecord& record) {
    const auto detail = json::parse(record.detail, nullptr, false);
    if (!detail.is_object() || !detail.contains("bytes_per_second") ||
        !detail["bytes_per_second"].is_number() || !detail.contains("confirmed") ||
        !detail["confirmed"].is_number_unsigned())
        return std::nullopt;
    const auto number = [&](const char* key) {
        const auto found = detail.find(key);
        return found == detail.end() || !found->is_string()
                   ? std::nullopt
                   : parse_number<std::uint64_t>(found->get<std::string>());
    };
    const auto candidate = planner::candidate_of(record.model);
    const auto text_hash = number("text_hash"), machine = number("machine");
    if (!candidate || !text_hash || !machine) return std::nullopt;
    return planner::AutoChoice{*candidate,
                               record.reason,
                               record.time,
                               detail["confirmed"].get<unsigned>(),
                               {*text_hash, *machine, detail["bytes_per_second"].get<double>()}};
}

std::string to_text(const std::vector<TrialStatus>& trials, const std::vector<TrialStatus>& ended) {
    return dump({{"trials", list_of(trials, trial_json)}, {"ended", list_of(ended, trial_json)}});
}

std::string names_text(const std::vector<std::string>& folders, const std::set<int>& pids) {
    return dump({{"policy_folders", folders}, {"processes", pids}});
}

std::string to_text(const planner::Judgement& judgement) { return dump(judgement_json(judgement)); }

std::string to_string(const LocalStatus& local) {
    return fmt::format("{:.0f} % same core, {:.0f} % by chance ({} reads counted)", 100 * local.same.core,
                       100 * local.chance.core, local.samples);
}

namespace {

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
    const auto open = [&](const json& its) { // its list of threads is left open
        const auto text = dump(its);
        return before + text.substr(0, text.size() - 1) + ",\"threads\":[";
    };
    text_.add(process.owner, open(value), open(redacted(value)));
    policy_ = process.policy;
    is_first_thread_ = true;
}

void AnswerText::add(const ThreadStatus& thread, uid_t owner) {
    tally_.add(thread, policy_);
    add_owned(text_, owner, std::exchange(is_first_thread_, false) ? "" : ",", to_json(thread));
}

void AnswerText::end_process() { text_.add("]}"); }

void AnswerText::add(const QueueStatus& queue) {
    tally_.add(queue);
    text_.add(separator() + dump(to_json(queue)));
}

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

OwnedText finish(AnswerText text, Overview overview,
                 const std::optional<accounting::MeasurementReport>& measured) {
    text.tally().judge(overview, measured);
    const json value = to_json(overview);
    // Names of tasks whose owner is not known are for root only.
    const std::map<std::string, json> nameless{{"refused", refused_json(overview, false)},
                                               {"problems", problems_json(overview.problems, false)},
                                               {"notes", problems_json(overview.notes, false)}};
    for (const auto& [key, member] : value.items())
        if (const auto other = nameless.find(key); other != nameless.end())
            text.add_member(key, OwnedText::no_owner, dump(member), dump(other->second));
        else
            text.add_member(key, dump(member));
    text.add_member("costs", to_text(overview.costs));
    text.add_member("measurement", to_text(measured));
    return text.finish();
}

OwnedText finish_plan(AnswerText text, const std::vector<planner::Problem>& problems,
                      const planner::Crowding* crowding) {
    text.add_member("problems", dump(list_of(problems)));
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
    json value{{"subject", subject}, {"queues", list_of(queues)}};
    if (!note.empty()) value["note"] = note;
    return OwnedText(dump(value));
}

} // namespace affinityd::status
