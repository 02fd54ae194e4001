// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/client/answers.hpp"

#include "affinityctl/present/document.hpp"
#include "base/text.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityctl {

using nlohmann::json;

namespace {

constexpr const char* in_place = "in place";

std::string queue_why(const json& queue) {
    auto why = text_of(queue, queue.contains("note") ? "note" : "reason");
    if (queue.contains("shared_with")) why += " (shared with " + text_of(queue, "shared_with") + ")";
    return why;
}

std::string thread_state(const json& thread) {
    const auto outcome = text_of(thread, "outcome");
    return text_of(thread, "state") + (outcome == "-" || outcome == "done" ? "" : ", " + outcome);
}

std::string thread_why(const json& thread) {
    auto why = text_of(thread, thread.contains("reason") ? "reason" : "would_change");
    if (thread.contains("decided_by")) why += " (" + text_of(thread, "decided_by") + ")";
    return why;
}

std::string action_subject(const json& action) {
    const auto kind = text_of(action, "kind");
    if (kind == "task") return "task " + text_of(action, "tid") + " (" + text_of(action, "comm") + ")";
    if (kind == "irq") return "IRQ " + text_of(action, "irq") + " (" + text_of(action, "label") + ")";
    return kind == "unit" ? "unit " + text_of(action, "unit")
                          : text_of(action, "nic") + " " + text_of(action, "queue");
}

std::string nics_with_shared(const json& cost) {
    std::string nics;
    for (const auto& nic : list(cost, "nics"))
        nics +=
            (nics.empty() ? "" : ",") + text_of(nic, "nic") + (nic.value("shared", false) ? " (shared)" : "");
    return nics;
}

std::string figure(const json& value) {
    return value.is_number() ? fmt::format("{:.3f}", value.get<double>()) : "-";
}

std::string cost_before(const json& cost) {
    const auto before = member(cost, "before");
    return before.is_null()
               ? "-"
               : figure(member(before, "cpu_seconds_per_gb")) + " (" + text_of(before, "model") + ")";
}

std::string holders(const json& seat) {
    constexpr std::size_t most_named = 6; // of one policy on one CPU
    std::string text, last;
    std::size_t named = 0, left_out = 0;
    const auto finish = [&] { return left_out > 0 ? fmt::format(" and {} more", left_out) : ""; };
    for (const auto& hold : seat["holds"]) {
        const auto policy = text_of(hold, "policy");
        const bool is_first = text.empty() || policy != last;
        if (is_first) {
            text += finish() + (text.empty() ? "" : "; ") + policy + ": ";
            named = left_out = 0;
            last = policy;
        }
        if (named == most_named) {
            ++left_out;
            continue;
        }
        text += (named++ == 0 ? "" : ", ") + text_of(hold, "what");
        if (const auto cpus = text_of(hold, "cpus"); cpus != text_of(seat, "cpu")) text += " on " + cpus;
    }
    return text.empty() ? "-" : text + finish();
}

bool is_measured(const json& record) {
    return record.value("outcome", "") == "done" && record.value("bytes", 0.0) > 0;
}

std::string record_rate(const json& record) {
    return is_measured(record) ? figure(record.value("bits_per_second", 0.0) / 1e9) : "-";
}

std::string record_cost(const json& record) {
    return is_measured(record) ? figure(record.value("cpu_seconds", 0.0) / (record.value("bytes", 0.0) / 1e9))
                               : "-";
}

std::string model_of(const json& policy) {
    const bool is_auto = policy.contains("auto"); // a note says which model is in force
    const auto model = is_auto ? "auto" : text_of(policy, "affinity");
    if (policy.value("released", false)) return model + ", released";
    return is_auto || policy.value("active", true) ? model : model + ", off";
}

bool has_note(const json& policy, std::string_view begin) { return text(policy, "note").starts_with(begin); }

std::string nics_of(const json& policy) {
    return cell(joined(list(policy, "nics"), ",")) + (has_note(policy, "no interface ") ? " (!)" : "");
}

std::string processes_of(const json& policy) {
    return text_of(policy, "processes") + (has_note(policy, "no process ") ? " (!)" : "");
}

std::string held_of(std::uint64_t held, std::uint64_t wanted) {
    return wanted == 0 ? "-" : fmt::format("{}/{}", held, wanted);
}

std::string threads_of(const json& policy) {
    return held_of(count(policy, "threads_in_place"), count(policy, "threads_wanted"));
}

std::string queues_of(const json& policy) {
    return held_of(count(policy, "queues_held"), count(policy, "queues_wanted"));
}

std::string gain_text(const json& policy) { return text_of(policy, "cost"); }

/// The part of its packets that are read on the core where they arrive.
std::string local_of(const json& policy) {
    const auto local = member(policy, "local");
    const auto core = member(member(local, "same"), "core");
    if (!core.is_number() || count(local, "samples") < fewest_samples) return "-";
    return fmt::format("{:.0f} %", 100 * core.get<double>());
}

/// The name of a queue: its interface and number, or else its interrupt.
std::pair<std::string, std::uint64_t> key_of(const json& part) {
    const auto nic = text(part, "nic");
    return part.contains("queue_number") ? std::pair(nic, count(part, "queue_number"))
                                         : std::pair(nic + " irq", count(part, "irq"));
}

// clang-format off
namespace fields {
constexpr Field shares[] = {
    {"cpu", "", "number", "on the same CPU, 0 to 1"},
    {"core", "", "number", "on the same core"},
    {"llc", "", "number", "in the same last-level cache"},
    {"node", "", "number", "on the same NUMA node"},
};
constexpr Field locals[] = {
    {"samples", "", "count", "reads that were counted"},
    {"unknown", "", "count", "reads whose packet's arrival is not known"},
    {"same", "", "object", "the parts read where the packet arrived", shares},
    {"chance", "", "object", "the parts by chance", shares},
};
constexpr Field at_arrivals[] = {
    {"tasks", "", "count", "tasks"},
    {"is_there", "", "flag", "their packets arrive on their lane"},
    {"why", "", "text", "the reason"},
};
constexpr Field not_steered[] = {
    {"listeners", "", "count", "listeners that are not steered"},
    {"state", "", "text", "left alone"},
    {"why", "", "text", "the reason"},
};
constexpr Field problems[] = {
    {"name", "", "text*", "its kind and policy, file or interface, as `acknowledge` takes it"},
    {"severity", "", "text*", "attention; settling: the next pass corrects it; acknowledged; note"},
    {"until", "", "time*", "acknowledged until then"},
    {"kind", "", "text*", "drift, fight, refused, cpuset, vector, file, policy, nic, claim, journal, process, listener, events, rights, unit, steering or throughput; of notes own-cpus, rps-left or immovable"},
    {"policy", "", "text", "the policy, empty for none"},
    {"subject", "", "text", "the thread, queue, file or interface"},
    {"message", "", "text", "the fault"},
    {"hint", "", "text", "the remedy, a command where there is one"},
    {"since", "", "time?*", "its begin, null where that is not known"},
};
constexpr Field threads[] = {
    {"pid", "PID", "count*", "in the table alone: its process"},
    {"tid", "TID", "count", "the thread"},
    {"comm", "NAME", "text", "its name"},
    {"policy", "POLICY", "text*", "in the table alone: its policy"},
    {"present", "CPUS", "cpus*", "its CPUs, read for this answer"},
    {"wanted", "WANTED", "cpus*", "the CPUs that its policy wants"},
    {"state", "", "text*", "in place, drifted, kept off, refused, left alone, yielded, fought over, outside its cpuset, immovable, unwanted or would change"},
    {"outcome", "", "text*", "the result of the last change"},
    {"corrections", "", "count*", "corrections of changes by other programs"},
    {"", "STATE", "text", "", {}, thread_state},
};
constexpr Field placed_threads[] = {
    {"tid", "TID", "count", "the thread"},
    {"comm", "NAME", "text", "its name"},
    {"present", "CPUS", "cpus", "its CPUs now"},
    {"wanted", "WANTED", "cpus*", "the CPUs that its policy wants"},
    {"original", "BEFORE US", "cpus*", "its CPUs before the first change"},
    {"joined", "", "text*", "its own request to join a slot"},
    {"reason", "", "text*", "the reason for its place"},
    {"would_change", "", "text*", "the reason for a change that is due"},
    {"decided_by", "", "text*", "file and line of the policy or thread rule"},
    {"", "WHY", "prose", "", {}, thread_why},
};
constexpr Field memories[] = {
    {"nodes", "", "cpus", "the NUMA nodes of its memory"},
    {"state", "", "text", "the state of the move"},
};
constexpr Field processes[] = {
    {"pid", "", "count", "the process"},
    {"comm", "", "text*", "its name"},
    {"policy", "", "text", "its policy"},
    {"nics", "", "text[]*", "the interfaces that serve it"},
    {"nics_note", "", "text*", "the reason why these are not known"},
    {"memory", "", "object*", "under memory: follow", memories},
    {"threads", "", "object[]", "its threads", threads},
};
constexpr Field queues[] = {
    {"nic", "NIC", "text*", "the interface"},
    {"", "WHAT", "text", "", {}, queue_name},
    {"kind", "", "text", "irq, steering or kernel"},
    {"irq", "", "count*", "the interrupt's number"},
    {"label", "", "text*", "the interrupt's handler"},
    {"device", "", "text*", "the interrupt's device"},
    {"queue", "", "text*", "the steered queue: rx-0, tx-0, rx-0-flows"},
    {"queue_number", "", "count*", "its number, where it is known"},
    {"policy", "POLICY", "text", "the policy that decides"},
    {"present", "NOW", "text*", "its CPUs or value now"},
    {"wanted", "WANTED", "text", "the wish of the policy"},
    {"original", "BEFORE US", "text*", "the value before the first change"},
    {"state", "STATE", "text*", "in place, not in place, would change, refused, immovable, fought over, on another CPU, decided by another policy, released or not read"},
    {"reason", "", "text*", "the reason for its place"},
    {"note", "", "text*", "another program keeps changing it, or it is elsewhere for a reason"},
    {"shared_with", "", "text*", "other interfaces or devices on the same line"},
    {"kept_off", "", "flag*", "no policy places it, it is only kept off CPUs of isolate: true"},
    {"", "WHY", "prose", "", {}, queue_why},
};
constexpr Field faults[] = {
    {"file", "", "text", "the file"},
    {"line", "", "count", "its line"},
    {"column", "", "count", "its column"},
    {"policy", "", "text", "the policy"},
    {"message", "", "text", "the fault"},
    {"in_force", "", "text", "the file that counts instead, or empty"},
    {"note", "", "text", "more about it"},
};
constexpr Field loads[] = {
    {"at", "", "time", "the time of the last reading of files"},
    {"ok", "", "flag", "all files are in force as they stand"},
    {"refused", "", "text", "the reason why nothing of it counts, or empty"},
    {"faults", "", "object[]", "files that are not in force as they stand", faults},
};
constexpr Field lanes[] = {
    {"nics", "", "text[]", "interfaces that serve the same tasks"},
    {"spares", "", "text[]", "interfaces that a bond keeps in reserve"},
    {"cores", "", "cpus[]", "cores where tasks and interrupts meet"},
};
constexpr Field joins[] = {
    {"threads", "", "count", "threads that have joined slots"},
    {"slots", "", "count{}", "threads in each slot"},
};
constexpr Field steers[] = {
    {"listeners", "", "count", "listeners that get what arrives on the lanes of their workers"},
    {"left", "", "object[]", "others, by reason", not_steered},
};
constexpr Field accepts[] = {
    {"workers", "", "count", "threads that took any"},
    {"least", "", "count", "connections or datagrams taken by the thread that took fewest", {}, nullptr, "worker_accepts_min"},
    {"most", "", "count", "connections or datagrams taken by the thread that took most", {}, nullptr, "worker_accepts_max"},
};
constexpr Field interruptions[] = {
    {"seconds", "", "count", "the time for which they were counted, at most an hour", {}, nullptr, "interruptions_seconds"},
    {"device", "", "count", "interrupts of devices in that time on the CPUs that the policy has for itself", {}, nullptr, "interruptions_device"},
    {"timer", "", "count", "ticks and other timer interrupts there", {}, nullptr, "interruptions_timer"},
    {"call", "", "count", "calls by other CPUs there (IPI)", {}, nullptr, "interruptions_call"},
    {"other", "", "count", "all others there, such as NMI and machine checks", {}, nullptr, "interruptions_other"},
};
constexpr Field policies[] = {
    {"name", "POLICY", "text", "its name"},
    {"description", "", "text*", "its description"},
    {"file", "", "text*", "its file"},
    {"affinity", "", "text*", "none, irq, process or full, under auto that which is in force"},
    {"", "MODEL", "text", "", {}, model_of},
    {"cpus", "CPUS", "cpus*", "the CPUs of its tasks"},
    {"active", "", "flag*", "it is carried out"},
    {"released", "", "flag*", "it was released by hand"},
    {"nics", "", "text[]*", "its interfaces"},
    {"", "NICS", "text", "", {}, nics_of},
    {"lanes", "", "object[]*", "its lanes", lanes},
    {"processes", "", "count*", "processes under the policy", {}, nullptr, "processes"},
    {"", "PROCS", "text", "", {}, processes_of},
    {"threads", "", "count*", "their threads"},
    {"threads_wanted", "", "count*", "threads that the policy gives a place", {}, nullptr, "threads_wanted"},
    {"threads_in_place", "", "count*", "threads that are in their place", {}, nullptr, "threads_in_place"},
    {"", "THREADS", "text", "", {}, threads_of},
    {"", "QUEUES", "text", "", {}, queues_of},
    {"threads_drifted", "", "count*", "threads that another program changed since the last look", {}, nullptr, "threads_drifting"},
    {"drift_put_right", "PUT RIGHT", "count*", "changes by other programs that were corrected since the start", {}, nullptr, "put_right_total"},
    {"auto", "", "text*", "under affinity: auto, how far the choice is, and its figures"},
    {"note", "", "text*", "the respect in which it does not do its work, or restricts nothing here"},
    {"joined", "", "object*", "under allow_join", joins},
    {"local", "", "object*", "where enough reads were counted", locals},
    {"", "LOCAL", "text", "", {}, local_of},
    {"", "COST", "text", "", {}, gain_text},
    {"steer", "", "object*", "where it steers listeners", steers},
    {"accepts", "", "object*", "connections or datagrams taken, where they are counted", accepts},
    {"at_arrivals", "", "object[]*", "under steer: tasks", at_arrivals},
    {"interruptions", "", "object*", "under exclusive or isolate, of its CPUs", interruptions},
};
constexpr Field crowded_tasks[] = {
    {"tid", "", "count", "the thread"},
    {"policy", "", "text", "its policy"},
};
constexpr Field balances[] = {
    {"busiest_core", "", "count", "the busiest core, by its first CPU"},
    {"busiest_load", "", "number", "its load, in CPUs of work"},
    {"free_core", "", "count", "the least loaded core that the tasks may use"},
    {"free_load", "", "number", "its load"},
    {"tasks", "", "object[]", "tasks that share the busiest core", crowded_tasks},
    {"text", "", "text", "the same in words"},
};
constexpr Field units[] = {
    {"unit", "", "text", "the unit, under means: cpuset"},
    {"policy", "", "text", "its policy"},
    {"wanted", "", "cpus", "its cpuset by the policy"},
    {"state", "", "text", "its state"},
};
constexpr Field writers[] = {
    {"name", "", "text", "the program or scheduler"},
    {"where", "", "text", "its place"},
    {"note", "", "text", "its effect"},
    {"keeps_off", "", "flag", "it leaves alone what is under policy"},
};
constexpr Field floods[] = {
    {"pid", "", "count", "the process with most events"},
    {"uid", "", "count", "its user's number"},
    {"user", "", "text", "its user's name"},
    {"events_per_minute", "", "count", "events above the budget"},
    {"looked_at_every_seconds", "", "number", "the time between two looks, s"},
    {"muted", "", "flag", "its renames and threads are not reported until the next pass"},
};
constexpr Field cost_nics[] = {
    {"nic", "", "text", "the interface"},
    {"bytes", "", "number", "its traffic"},
    {"shared", "", "flag", "other policies use it, too"},
};
constexpr Field past_costs[] = {
    {"model", "", "text", "the model of that period"},
    {"ended_at", "", "number", "its end, s since 1970"},
    {"bytes", "", "number", "its traffic"},
    {"cpu_seconds", "", "number", "its CPU time"},
    {"cpu_seconds_per_gb", "", "number?", "both together"},
};
constexpr Field costs[] = {
    {"policy", "POLICY", "text", "the policy"},
    {"model", "MODEL", "text", "its model"},
    {"seconds", "", "number", "the length of the period"},
    {"nics", "", "object[]", "its interfaces", cost_nics},
    {"", "NICS", "text", "", {}, nics_with_shared},
    {"bytes", "", "number", "its traffic"},
    {"", "GB", "text", "", {}, [](const json& cost) { return figure(cost.value("bytes", 0.0) / 1e9); }},
    {"cpu_seconds", "", "number", "the CPU time of its processes' control groups"},
    {"cpu_seconds_per_gb", "", "number?", "CPU seconds for a gigabyte of traffic", {}, nullptr, "cpu_seconds_per_gigabyte"},
    {"", "CPU S/GB", "text", "", {}, [](const json& cost) { return figure(member(cost, "cpu_seconds_per_gb")); }},
    {"before", "", "object?", "the last period under another model", past_costs},
    {"", "CPU S/GB BEFORE", "text", "", {}, cost_before},
};
constexpr Field records[] = {
    {"id", "", "count", "its number"},
    {"time", "", "count", "the begin of the measurement, s since 1970", {}, nullptr, "timestamp_seconds"},
    {"", "TIME", "text", "", {}, [](const json& record) { return local_time(record.value("time", 0LL)); }},
    {"kind", "KIND", "text", "ttcp, models, passive, locality, trial, auto, latency, sharing, smt or cache"},
    {"outcome", "OUTCOME", "text", "done, failed or skipped"},
    {"path", "PATH", "text", "loopback or host:port"},
    {"model", "MODEL", "text", "the model in force"},
    {"", "GBIT/S", "text", "", {}, record_rate},
    {"", "CPU S/GB", "text", "", {}, record_cost},
    {"policies", "POLICIES", "text", "the policies in force"},
    {"seconds", "", "number", "its length"},
    {"bytes", "", "number", "its traffic"},
    {"bits_per_second", "", "number", "its throughput, bit/s"},
    {"cpu_seconds", "", "number", "its CPU time"},
    {"touches_nic_interrupts", "", "flag*", "it went over a NIC"},
    {"reason", "REASON", "prose*", "the reason of a failure, or what was found"},
    {"ghz_per_gbps", "", "number*", "CPU clocks for each bit"},
};
constexpr Field trends[] = {
    {"kind", "", "text*", "the kind of measurement"},
    {"path", "", "text*", "its path"},
    {"direction", "", "text", "down, up, steady or unknown"},
    {"median", "", "number", "the median of the earlier runs"},
    {"low", "", "number", "the lower end of what they predict"},
    {"high", "", "number", "the upper end"},
    {"change", "", "number", "the last run against the median, as a part of it"},
};
constexpr Field measurements[] = {
    {"last", "", "object", "the last record", records},
    {"summary", "", "text", "the same in words"},
    {"runs", "", "count", "runs over that path"},
    {"trend", "", "object", "the trend", trends},
};
constexpr Field measuring[] = {
    {"interval_seconds", "", "count", "the time between two measurements by the daemon; 0: on demand only"},
    {"target", "", "text", "HOST:PORT, empty: over loopback"},
    {"settings", "", "text", "the file that says so"},
};
constexpr Field buckets[] = {
    {"up_to_seconds", "", "number?", "the bound, null for all"},
    {"count", "", "count", "those that took no longer"},
};
constexpr Field latencies[] = {
    {"count", "", "count", "events after which something was placed"},
    {"seconds", "", "number", "the sum of their times"},
    {"buckets", "", "object[]", "how many took how long", buckets},
};
constexpr Field trial_figures[] = {
    {"name", "FIGURE", "text", "its name"},
    {"unit", "UNIT", "text", "its unit, empty for none"},
    {"before", "BEFORE", "interval?", "before the policy was in force, null where too little was seen"},
    {"after", "AFTER", "interval?", "under it"},
    {"change", "CHANGE", "change?", "relative"},
};
constexpr Field trials[] = {
    {"policy", "", "text", "the policy"},
    {"file", "", "text", "the daemon's copy, with a line before its text"},
    {"replaces", "", "text?", "the file that counts without it"},
    {"own_text", "", "text", "the 64 bits of FNV-1a of the file that keep writes, when the trial began; 0: there was none"},
    {"seconds", "", "count", "its length"},
    {"seconds_left", "", "count", "the time until it goes back"},
    {"seconds_until_placed", "", "count", "the time for which its programs are only watched"},
    {"verdict", "", "text", "better, worse, no difference shown, or not known"},
    {"sentence", "", "text", "the same with figures"},
    {"figures", "", "object[]", "before and after", trial_figures},
};
constexpr Field statuses[] = {
    {"subject", "", "text*", "of `status SUBJECT`: its name"},
    {"health", "", "text", "ok, settling or attention"},
    {"problems", "", "object[]", "all that the screen names, the gravest first", problems},
    {"notes", "", "object[]", "findings that are no part of the verdict", problems},
    {"problems_elsewhere", "", "count*", "of `status SUBJECT`: problems of others"},
    {"version", "", "text", "the daemon's version"},
    {"pid", "", "count", "its process"},
    {"dry_run", "", "flag", "a dry run: nothing is changed", {}, nullptr, "dry_run"},
    {"started_at", "", "time", "its start"},
    {"loaded_at", "", "time", "the time since which the policies are in force"},
    {"load", "", "object", "the last reading of files", loads},
    {"policy_folders", "", "text[]", "folders of policies"},
    {"online", "", "cpus", "online CPUs"},
    {"journal", "", "count", "changes that can be undone"},
    {"reconciles", "", "count", "full passes since the start", {}, nullptr, "passes_total"},
    {"reconciling", "", "flag", "one is under way"},
    {"last_pass_at", "", "time?", "the end of the last one"},
    {"last_pass_seconds", "", "number", "the length of the last full pass, s", {}, nullptr, "last_pass_seconds"},
    {"reconcile_seconds", "", "count", "the time between two"},
    {"fast_path", "", "count", "processes and threads looked at because of an event", {}, nullptr, "events_total"},
    {"events_lost", "", "count", "times that the kernel lost events", {}, nullptr, "events_lost_total"},
    {"event_to_pinned", "", "object", "times from an event of the kernel until what it concerns is placed", latencies},
    {"refused", "", "text{}", "refused changes, each with its reason"},
    {"outcomes", "", "count{}", "changes by their outcome"},
    {"policies", "", "object[]", "policies in force", policies},
    {"released_processes", "", "count[]", "processes released by hand"},
    {"acknowledged", "", "text{}", "problems that an administrator acknowledged, each with its end"},
    {"balance", "", "object?", "the most crowded core, null for none", balances},
    {"units", "", "object[]", "units with a cpuset of a policy", units},
    {"other_writers", "", "object[]", "other programs that set masks, and a loaded sched_ext scheduler", writers},
    {"floods", "", "object[]", "users whose events are left to passes", floods},
    {"trials", "", "object[]", "policies on trial", trials},
    {"processes", "", "object[]", "processes under policy", processes},
    {"queues", "", "object[]", "interrupts and steering under policy", queues},
    {"costs", "", "object[]", "CPU time of the policies' traffic", costs},
    {"measure", "", "object*", "the measurements by the daemon", measuring},
    {"measurement", "", "object?", "the last measurement of throughput", measurements},
};
constexpr Field actions[] = {
    {"kind", "", "text", "task, irq, steering, kernel or unit"},
    {"", "WHAT", "text", "", {}, action_subject},
    {"pid", "", "count*", "the task's process"},
    {"tid", "", "count*", "the task"},
    {"comm", "", "text*", "its name"},
    {"irq", "", "count*", "the interrupt's number"},
    {"label", "", "text*", "its handler"},
    {"device", "", "text*", "its device"},
    {"nic", "", "text*", "the interface"},
    {"queue", "", "text*", "the steered queue"},
    {"unit", "", "text*", "the unit"},
    {"from", "FROM", "text", "the value now"},
    {"to", "TO", "text", "the value then"},
    {"policy", "", "text", "the policy, empty for none"},
    {"restore", "", "flag", "it puts back the original value"},
    {"reason", "WHY", "prose", "the reason"},
};
constexpr Field notes[] = {
    {"policy", "", "text", "the policy, empty for none"},
    {"message", "", "text", "a fact that is not known from files alone"},
};
constexpr Field holds[] = {
    {"policy", "", "text", "the policy"},
    {"what", "", "text", "the tasks or the interrupt"},
    {"cpus", "", "cpus", "all their CPUs"},
};
constexpr Field seats[] = {
    {"cpu", "CPU", "count", "the CPU"},
    {"node", "NODE", "count?", "its NUMA node"},
    {"tasks", "TASKS", "number", "tasks that sit there; one of several CPUs counts for a part on each"},
    {"interrupts", "INTERRUPTS", "count", "interrupts that go there"},
    {"holds", "", "object[]", "their names", holds},
    {"", "WHAT", "prose", "", {}, holders},
};
constexpr Field plans[] = {
    {"actions", "", "object[]*", "changes of the next pass", actions},
    {"problems", "", "object[]", "wishes that cannot be carried out", problems},
    {"balance", "", "object?*", "as in status, once the tasks are placed", balances},
    {"notes", "", "object[]*", "with PATH or --root: facts that are not known", notes},
    {"policies", "", "object[]*", "with PATH or --root: the policies", policies},
    {"processes", "", "object[]*", "with PATH or --root: processes, where they would be", processes},
    {"queues", "", "object[]*", "with PATH or --root: interrupts and steering, where they would be", queues},
    {"cpus", "", "object[]*", "with --cpus: each CPU and all that is to sit there", seats},
};
constexpr Field considered[] = {
    {"policy", "", "text", "the policy"},
    {"at", "", "text", "file and line of its match"},
    {"matched", "", "flag", "it matches"},
    {"field", "", "text*", "else: the condition that does not hold"},
    {"wanted", "", "text*", "the condition's value"},
    {"found", "", "text*", "the process's value"},
};
constexpr Field means[] = {
    {"cpuset_of", "", "text", "the unit"},
    {"state", "", "text", "its state"},
};
constexpr Field listeners[] = {
    {"port", "", "count", "its port"},
    {"protocol", "", "text*", "tcp or udp"},
    {"thread", "", "count", "the thread that accepts"},
    {"cpu", "", "count", "the CPU whose packets it gets"},
};
constexpr Field handed[] = {
    {"to_lane", "", "count", "connections to the worker of their lane"},
    {"to_next", "", "count", "connections to the next one, as queues were full"},
    {"to_kernel", "", "count", "connections left to the kernel"},
    {"full", "", "count", "queues that were full"},
};
constexpr Field arrivals[] = {
    {"cpu", "", "count", "the CPU where packets arrive"},
    {"samples", "", "count", "packets seen"},
    {"sources", "", "text[]", "the queues or the other causes that bring them there"},
};
constexpr Field candidates[] = {
    {"pid", "PID", "count", "the process"},
    {"comm", "NAME", "text", "its name"},
    {"policy", "POLICY", "text?", "its policy"},
};
constexpr Field explanations[] = {
    {"pid", "", "count*", "of a task: its process"},
    {"comm", "", "text*", "its name"},
    {"policy", "", "text?*", "its policy, null for none"},
    {"released", "", "flag*", "it was released by hand"},
    {"means", "", "object?*", "the cpuset that holds it", means},
    {"trial_seconds_left", "", "count*", "its policy is on trial for so long"},
    {"auto", "", "text*", "under affinity: auto, how far the choice is, and its figures"},
    {"kept_off", "", "text*", "the CPUs that policies of others claim"},
    {"considered", "", "object[]*", "policies in the order in which they were tried", considered},
    {"local", "", "object*", "as in status", locals},
    {"arrivals", "", "object[]*", "where its packets arrive", arrivals},
    {"at_arrivals", "", "object[]*", "as in status", at_arrivals},
    {"nics", "", "text[]*", "the interfaces that serve it"},
    {"nics_note", "", "text*", "the reason why these are not known"},
    {"way", "", "text*", "from the network namespace that it lives in to these, hop by hop"},
    {"listeners", "", "object[]*", "its steered listeners", listeners},
    {"not_steered", "", "object[]*", "other listeners", not_steered},
    {"handed", "", "object*", "steered connections of its network namespace", handed},
    {"handed_datagrams", "", "object*", "the same of datagrams", handed},
    {"pinned", "", "text*", "the close binding of a task that no packets reach"},
    {"threads", "", "object[]*", "its threads", placed_threads},
    {"subject", "", "text*", "of an interface, interrupt, policy, unit or name: the subject"},
    {"queues", "", "object[]*", "interrupts and steering", queues},
    {"note", "", "text*", "the reason why no policy places it"},
    {"explanations", "", "any*", "of a policy or unit: the same for each process and for the queues"},
    {"of_policy", "", "object*", "the policy, as in status", policies},
    {"candidates", "", "object[]*", "of the name of several processes: these", candidates},
};
constexpr Field histories[] = {
    {"records", "", "object[]", "measurements, oldest first", records},
    {"trends", "", "object[]", "the trend of each path", trends},
    {"kept", "", "flag", "they outlive the daemon"},
    {"fault", "", "text*", "the reason why the history cannot be read"},
};
} // namespace fields
// clang-format on

} // namespace

const Fields status_answer = fields::statuses, plan_answer = fields::plans,
             explain_answer = fields::explanations, history_answer = fields::histories,
             seat_fields = fields::seats, queue_fields = fields::queues, thread_fields = fields::threads,
             explained_thread_fields = fields::placed_threads, cost_fields = fields::costs,
             action_fields = fields::actions, record_fields = fields::records,
             candidate_fields = fields::candidates, policy_fields = fields::policies,
             accept_fields = fields::accepts, interruption_fields = fields::interruptions,
             figure_fields = fields::trial_figures;

std::string local_sentence(const json& local) {
    const auto samples = count(local, "samples");
    if (samples < fewest_samples) return {};
    const auto core = [&](const char* key) { return 100 * member(local, key).value("core", 0.0); };
    return fmt::format("{:.0f} % of its packets are read on the core where they arrive, {:.0f} % would be by "
                       "chance ({})",
                       core("same"), core("chance"), affinityd::counted(samples, "read"));
}

std::string queue_name(const json& queue) {
    return text_of(queue, "kind") == "irq" ? "IRQ " + text_of(queue, "irq") + " " + text_of(queue, "label")
                                           : text_of(queue, "queue");
}

std::map<std::string, QueueCount> queues_by(const json& status, const char* key) {
    struct Queue {
        std::string state{in_place}; ///< of the first part that is not in place
        affinityd::CpuSet cpus;
    };
    std::map<std::string, std::map<std::pair<std::string, std::uint64_t>, Queue>> found;
    for (const auto& part : list(status, "queues")) {
        const auto state = text(part, "state");
        const bool is_machine_table = text(part, "nic").empty() && text(part, "kind") != "irq";
        if (is_machine_table || state == "decided by another policy" || state == "released") continue;
        if (part.value("kept_off", false)) continue;
        auto& queue = found[text(part, key)][key_of(part)];
        if (queue.state == in_place) queue.state = state;
        if (text(part, "kind") == "irq") queue.cpus |= cpus(part, "present");
    }
    std::map<std::string, QueueCount> counts;
    for (const auto& [name, queues] : found)
        for (const auto& [queue, its] : queues) {
            auto& count = counts[name];
            ++count.wanted;
            ++(its.state == in_place ? count.held : count.elsewhere[its.state]);
            count.cpus |= its.cpus;
        }
    return counts;
}

std::vector<std::string>
about_policies(const std::vector<std::pair<std::string, std::string>>& policies_and_sentences) {
    std::vector<std::pair<std::string, std::vector<std::string>>> by_sentence;
    for (const auto& [policy, sentence] : policies_and_sentences) {
        auto found = std::ranges::find(by_sentence, sentence, [](const auto& known) { return known.first; });
        if (found == by_sentence.end()) found = by_sentence.insert(found, {sentence, {}});
        if (!policy.empty()) found->second.push_back(policy);
    }
    std::vector<std::string> lines;
    for (const auto& [sentence, names] : by_sentence)
        lines.push_back(names.empty() ? sentence
                                      : fmt::format("{} {}: {}", names.size() == 1 ? "policy" : "policies",
                                                    fmt::join(names, ", "), sentence));
    return lines;
}

std::string sentence_of(const json& problem) {
    auto policy = text(problem, "policy"), subject = text(problem, "subject");
    if (!policy.empty()) policy = "policy " + policy;
    const auto about = policy + (policy.empty() || subject.empty() ? "" : ", ") + subject;
    return about + (about.empty() ? "" : ": ") + text(problem, "message");
}

bool needs_attention(const json& status) { return text(status, "health") == "attention"; }

std::string balance_line(const json& answer) { return text(member(answer, "balance"), "text"); }

} // namespace affinityctl
