// SPDX-License-Identifier: Apache-2.0
// The daemon's answers: status, plan, explain, and the notes and problems in them.
#include "base/clock.hpp"
#include "base/text.hpp"
#include "core/daemon.hpp"
#include "core/task_status.hpp"
#include "host/self.hpp"
#include "inventory/command_lines.hpp"
#include "inventory/descriptors.hpp"
#include "inventory/facts.hpp"
#include "inventory/process_files.hpp"
#include "planner/crowding.hpp"
#include "status/json.hpp"

#include <algorithm>
#include <cctype>
#include <ctime>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

namespace affinityd::core {

namespace {

using policy::Model;

constexpr std::chrono::milliseconds longest_wait{200}; ///< for the arguments of a process

/// A unit whose name has no ending, which matches nothing; "": there is none.
std::string unit_without_ending(const policy::Selector& selector) {
    for (const auto& child : selector.children)
        if (auto name = unit_without_ending(child); !name.empty()) return name;
    if (selector.op != policy::Selector::Op::test ||
        selector.condition.field != policy::Condition::Field::unit)
        return {};
    for (const auto& pattern : selector.condition.patterns)
        if (pattern.is_literal() && pattern.text().find('.') == std::string::npos) return pattern.text();
    return {};
}

/// The number of queues that the first NIC under `full` has, where its workers are on more or fewer lanes;
/// "": as many.
std::string queues_note(const World& world, const planner::ResolvedPolicy& resolved) {
    if (resolved.policy->model != policy::Model::full) return {};
    for (const auto& lanes : resolved.nics) {
        const auto* nic = lanes.seats() == 0 ? nullptr : world.machine().nic(lanes.name);
        if (nic == nullptr) continue;
        const auto queues =
            std::ranges::count(nic->queues, machine::Direction::rx, &netdev::Queue::direction);
        const auto readers = lanes.seats();
        if (queues == 0 || static_cast<std::size_t>(queues) == readers) continue;
        return fmt::format("{} has {} queue{} for {} worker{} (ethtool -L changes that)", nic->name, queues,
                           queues == 1 ? "" : "s", readers, readers == 1 ? "" : "s");
    }
    return {};
}

/// Says that no process of the policy was ever seen; "": one was. To be asked once all processes have been
/// seen.
std::string match_note(const World& world, std::size_t index) {
    const auto& policy = world.policy(index);
    if (policy.model == policy::Model::none || policy.model == policy::Model::irq ||
        world.has_seen(policy.name))
        return {};
    const auto unit = unit_without_ending(policy.match);
    return unit.empty() ? "no process has matched it yet: see affinityctl check"
                        : fmt::format("no process can match it: write unit: {}.service", unit);
}

using Problems = std::vector<status::Finding>;
using status::finding, status::Ailment;

/// Policies whose tasks had CPUs of their own (CPUAffinity= of their unit, taskset), which they replaced.
Problems replaced_cpus(const World& world, const TaskTable& tasks, const state::Journal& journal) {
    const auto& online = world.placements().online;
    struct Own {
        std::size_t processes = 0;
        CpuSet cpus;
    };
    std::map<std::size_t, Own> by_policy;
    for (const auto& [pid, process] : tasks.processes()) {
        const auto record = journal.find(planner::TaskMask{process.id, pid, {}});
        if (!record || record->original.cpus().contains(process.cpuset.cpus.value_or(online) & online))
            continue;
        auto& own = by_policy[process.policy];
        own.cpus |= record->original.cpus();
        ++own.processes;
    }
    Problems notes;
    for (const auto& [index, own] : by_policy)
        notes.push_back(finding(Ailment::own_cpus, world.policy(index).name, "",
                                {fmt::format("{} of its processes had", own.processes),
                                 own.processes == 1 ? "its" : "their",
                                 own.cpus.to_list() + ": CPUAffinity= of a unit, or taskset"}));
    return notes;
}

/// Policies that keep all others off their CPUs, while none of their own programs runs. To be asked once all
/// processes have been seen.
Problems idle_claims(const World& world, const TaskTable& tasks) {
    const auto& placements = world.placements();
    if (placements.claims.empty()) return {};
    std::set<std::string_view> in_use;
    for (const auto& [pid, process] : tasks.processes())
        in_use.insert(world.policy(process.policy).name);
    Problems problems;
    for (const auto& claim : placements.claims) {
        const auto& policy = *placements.find(claim.policy)->policy;
        if (policy.model == policy::Model::irq || policy.exclusive != policy::Exclusive::always ||
            in_use.contains(claim.policy))
            continue;
        problems.push_back(finding(
            Ailment::claim, claim.policy, "exclusive",
            {claim.policy, fmt::format("CPU{} {} {}", claim.cpus.count() == 1 ? "" : "s",
                                       claim.cpus.to_list(), claim.cpus.count() == 1 ? "is" : "are")}));
    }
    return problems;
}

/// To be asked once all processes have been seen.
std::vector<planner::Problem> narrow_processes(const World& world, const TaskTable& tasks) {
    planner::NarrowProcesses narrow;
    for (const auto& [pid, process] : tasks.processes()) {
        CpuSet has;
        for (const auto& thread : process.threads)
            has |= thread.present;
        const auto& cpuset = process.cpuset.cpus;
        narrow.add(world.placements().policies[process.policy], process.id, process.threads.size(), has,
                   cpuset ? &*cpuset : nullptr);
    }
    return narrow.problems();
}

/// Why no policy places an interrupt, named as irq:NUMBER or by its label; "": there is none of that name.
std::string interrupt_note(const host::Root& root, const World& world, const std::string& subject) {
    const auto number =
        subject.starts_with("irq:") ? parse_number<unsigned>(subject.substr(4)) : std::nullopt;
    for (const auto& [nic, vectors] : world.machine().vectors)
        for (const auto& vector : vectors)
            if (number ? vector.irq == *number : vector.label == subject)
                return "an interrupt of " + nic + ": no policy places it";
    const auto& irqs = world.machine().irqs.irqs;
    const bool is_label = std::ranges::any_of(irqs, [&](const irq::Irq& irq) {
        return std::ranges::find(irq.actions, subject) != irq.actions.end();
    });
    // The table lacks an interrupt that was requested a moment ago.
    const bool exists = number && root.proc().exists("irq/" + std::to_string(*number));
    return is_label || exists ? "belongs to no NIC, and no policy names it in irqs" : "";
}

/// Says that no NIC is there for a policy with this many processes.
std::string nic_note(const World& world, std::size_t index, std::size_t processes) {
    const auto& policy = world.policy(index);
    const auto is_named = [&](const netdev::Nic& nic) {
        return std::ranges::any_of(policy.nics, [&](const auto& pattern) {
            return nic.is_called([&](std::string_view name) { return pattern.matches(name); });
        });
    };
    if (!policy.nics_auto && !policy.nics.empty() && std::ranges::none_of(world.machine().nics, is_named))
        return "no interface here is named like its nics: see affinityctl check";
    if (processes > 0 && policy.nics_auto && acts_as_process(world, index))
        return fmt::format("no NIC is known to serve its processes: {}", as_process);
    return {};
}

/// Says that a policy with this many processes does less than it says, and why.
std::string effect_note(const World& world, std::size_t index, std::size_t processes) {
    const auto& resolved = world.placements().policies[index];
    const auto& online = world.placements().online;
    if (processes > 0)
        if (auto note = queues_note(world, resolved); !note.empty()) return note;
    if (resolved.policy->model == Model::irq || !planner::restricts_nothing(resolved, online)) return {};
    return "restricts nothing on this machine: each of its places has all online CPUs (" + online.to_list() +
           ")";
}

/// All CPUs that a policy or one of its thread rules may use.
CpuSet cpus_of(const planner::ResolvedPolicy& resolved) {
    CpuSet cpus = resolved.allowed;
    for (std::size_t i = 1; i < resolved.distributions.size(); ++i)
        for (const auto& slot : resolved.distributions[i])
            cpus |= slot.cpus;
    return cpus;
}

/// Every policy with what it holds.
std::vector<status::PolicyStatus> policy_status(const Shared& shared, const Holdings& holdings) {
    const auto& world = *shared.current.world;
    std::vector<status::PolicyStatus> list;
    for (std::size_t i = 0; i < world.policies().policies.size(); ++i) {
        const auto& policy = world.policy(i);
        const auto& resolved = world.placements().policies[i];
        status::PolicyStatus value{.name = policy.name,
                                   .description = policy.description,
                                   .file = policy.at.file,
                                   .model = policy.model,
                                   .cpus = cpus_of(resolved),
                                   .active = resolved.active,
                                   .released = shared.releases.policy(policy.name)};
        for (const auto& lanes : resolved.nics) {
            value.nics.insert(value.nics.end(), lanes.nics.begin(), lanes.nics.end());
            auto& shown = value.lanes.emplace_back(status::LanesStatus{lanes.nics, lanes.spares, {}});
            for (const auto& cpus : lanes.cores())
                shown.cores.push_back(cpus);
        }
        if (const auto held = holdings.find(policy.name); held != holdings.end()) value.held = held->second;
        for (const auto& slot : policy.allow_join)
            value.held.joined.slots.try_emplace(slot);
        const auto& corrected = shared.executor.corrected();
        if (const auto found = corrected.find(policy.name); found != corrected.end())
            value.held.drift_put_right = found->second;
        value.note = nic_note(world, i, value.held.processes);
        list.push_back(std::move(value));
    }
    return list;
}

/// True for an interrupt or map that is only kept off CPUs, and is on none of these by itself, or not there.
bool is_left_alone(const World& world, const planner::QueueTarget& target, const status::QueueStatus& now) {
    using State = status::QueueStatus::State;
    if (target.off.empty()) return false;
    if (now.state == State::decided_by_other) return true;
    if (now.state != State::immovable)
        return !now.original && (now.state == State::in_place || now.state == State::not_read);
    const auto* irq = std::get_if<planner::IrqMask>(&target.subject);
    const auto* line = irq == nullptr ? nullptr : world.machine().irqs.find(irq->irq);
    return line != nullptr && line->effective && !line->effective->intersects(target.off);
}

/// Refusals and outcomes.
void add_outcomes(const enforcer::Executor& executor, status::Overview& into) {
    for (const auto& [subject, trouble] : executor.troubles())
        if (trouble.refusal) into.refused.emplace_back(subject, to_string(*trouble.refusal));
    const auto& counts = executor.counts();
    for (std::size_t i = 0; i <= static_cast<std::size_t>(enforcer::Outcome::failed); ++i)
        if (counts[i] > 0)
            into.outcomes[std::string(to_string(static_cast<enforcer::Outcome>(i)))] = counts[i];
}

/// There are no process events: tells how late a daemon with a `pass` this often is, and what helps.
Problems event_problems(const EventQueue& events, std::chrono::seconds pass, const host::Root& root) {
    if (events.absence().empty()) return {};
    // ECONNREFUSED: of another network namespace; EPERM: without the capability, or in a user namespace.
    const bool is_elsewhere = events.absence().find("Connection refused") != std::string::npos;
    const std::string remedy =
        host::is_container(root)
            ? "start the container with --network=host --pid=host --cap-add=NET_ADMIN (podman, docker); "
              "others: install affinityd on the host"
            : fmt::format(
                  "systemctl cat affinityd; remove {} from its drop-in; then systemctl daemon-reload; "
                  "systemctl restart affinityd",
                  is_elsewhere ? "PrivateNetwork=" : "PrivateUsers= or CapabilityBoundingSet=");
    return {finding(Ailment::events, "", "process events",
                    {std::to_string(pass.count()), events.absence(), remedy})};
}

using Field = policy::Condition::Field;

bool asks_for(const policy::Selector& match, Field one, Field other) {
    if (match.op == policy::Selector::Op::test)
        return match.condition.field == one || match.condition.field == other;
    return std::ranges::any_of(match.children,
                               [&](const auto& child) { return asks_for(child, one, other); });
}

/// By a condition on files of a process that not every user may read.
bool asks_for_files(const policy::Selector& match) { return asks_for(match, Field::exe, Field::listen); }

/// Policies name pods, and no runtime tells here which container is whose.
Problems pod_problems(const World& world, const host::Root& root) {
    Problems list;
    for (const auto& policy : world.policies().policies)
        if (asks_for(policy.match, Field::pod, Field::pod_namespace) && !inventory::tells_pods(root))
            list.push_back(finding(Ailment::pods, policy.name, "pods"));
    return list;
}

/// The daemon lacks rights for what is wanted now: tells which help.
Problems right_problems(const enforcer::Executor& executor, const World& world) {
    Problems list;
    if (!host::sees_all_processes() &&
        (world.needs_nic_usage() ||
         std::ranges::any_of(world.policies().policies, asks_for_files, &policy::Policy::match)))
        list.push_back(finding(Ailment::unseen, "", "rights"));
    const auto count = std::ranges::count_if(executor.troubles(), [](const auto& entry) {
        const auto& refusal = entry.second.refusal;
        return refusal && refusal->outcome == enforcer::Outcome::not_permitted;
    });
    if (count > 0)
        list.push_back(finding(Ailment::not_permitted, "", "rights",
                               {std::to_string(count), count == 1 ? "is" : "are"}));
    return list;
}

/// Interfaces that pass packets on to other CPUs, as no policy asks.
Problems rps_notes(const World& world) {
    Problems notes;
    for (const auto& nic : world.machine().nics)
        if (auto found = status::find_rps_left(world.machine(), world.placements(), nic))
            notes.push_back(std::move(*found));
    return notes;
}

/// Problems whose texts differ in numbers alone have the same key.
std::string key_of(const planner::Problem& problem) {
    std::string text = problem.policy + '\n' + problem.subject + '\n';
    std::ranges::copy_if(problem.message, std::back_inserter(text),
                         [](unsigned char byte) { return std::isdigit(byte) == 0; });
    return text;
}

} // namespace

std::vector<status::Finding> Daemon::present_problems() {
    const auto& world = *shared_.current.world;
    Problems list;
    const auto add = [&](Problems problems) { std::ranges::move(problems, std::back_inserter(list)); };
    const auto add_told = [&](const char* kind, std::vector<planner::Problem> problems) {
        for (auto& problem : problems)
            list.push_back({std::move(problem), kind});
    };
    add_told("file", loading_.problems());
    add_told("policy", world.placements().problems);
    // Until the first pass is over, not all processes have been seen.
    if (last_pass_ != Time{}) {
        add(idle_claims(world, tasks_.table()));
        add_told("policy", narrow_processes(world, tasks_.table()));
        add(replaced_cpus(world, tasks_.table(), shared_.journal()));
    }
    for (const auto& fault : shared_.journal().faults())
        list.push_back(finding(Ailment::journal, "", fault.subject, {fault.message}));
    add(way_problems(world, tasks_.table()));
    if (const auto* lines = tasks_.sources().command_lines())
        for (const auto& process : lines->silent())
            list.push_back(finding(Ailment::silent, "", fmt::format("process {}", process.tid),
                                   {std::to_string(process.tid)}));
    if (const auto* listeners = tasks_.sources().listeners()) {
        if (const auto fault = listeners->fault())
            list.push_back(finding(Ailment::listeners_unread, "", "listen", {fault->to_string()}));
        if (const auto known = listeners->list(); known && known->is_truncated)
            list.push_back(finding(Ailment::listeners_many, "", "listen"));
    }
    add(event_problems(tasks_.events(), shared_.settings.reconcile_interval, shared_.root));
    add(right_problems(shared_.executor, world));
    add(rps_notes(world));
    add(pod_problems(world, shared_.root));
    for (const auto& behaviour : shared_.behaviours)
        add(behaviour->problems());
    return list;
}

/// All that there are now, the newest first.
std::vector<status::Finding> Daemon::problems() {
    const auto now = std::chrono::system_clock::now();
    std::unordered_map<std::string, Time> still;
    auto list = present_problems();
    for (auto& each : list) {
        auto key = key_of(each.problem);
        const auto known = known_problems_.find(key);
        each.since = known == known_problems_.end() ? now : known->second;
        still.emplace(std::move(key), each.since);
    }
    known_problems_ = std::move(still);
    std::ranges::stable_sort(list, std::ranges::greater{}, &status::Finding::since);
    return list;
}

status::Overview Daemon::overview(const Holdings& holdings) {
    status::Overview overview{.pid = ::getpid(),
                              .dry_run = !shared_.acts(),
                              .started_at = started_at_,
                              .loaded_at = loaded_at_,
                              .settings = shared_.settings,
                              .online = shared_.current->machine().topology.online,
                              .journal = shared_.journal().size(),
                              .passes = work().passes(),
                              .passing = work().passing(),
                              .last_pass = last_pass_,
                              .pass_length = pass_length_,
                              .by_event = tasks_.events().handled(),
                              .latencies = tasks_.events().latencies(),
                              .events_lost = events_lost_,
                              .load = loading_.status()};
    add_outcomes(shared_.executor, overview);
    overview.policies = policy_status(shared_, holdings);
    for (const auto& behaviour : shared_.behaviours)
        behaviour->report(overview);
    for (std::size_t i = 0; i < overview.policies.size(); ++i) {
        auto& policy = overview.policies[i];
        const auto& world = *shared_.current.world;
        if (policy.note.empty()) policy.note = effect_note(world, i, policy.held.processes);
        if (policy.note.empty() && work().passes() > 1) policy.note = match_note(world, i);
    }
    for (const auto& process : shared_.releases.processes())
        overview.released.push_back(process.tid);
    std::ranges::sort(overview.released);
    overview.problems = problems();
    overview.floods = tasks_.events().floods(EventQueue::Clock::now());
    for (auto& flood : overview.floods)
        flood.user = tasks_.sources().user(flood.uid);
    return overview;
}

/// A question rests on the policies and targets in force when it began, and on a copy of the assignments, as
/// a look must not assign slots.
struct Daemon::Basis {
    std::shared_ptr<World> world;
    std::uint64_t version;
    planner::Assignments assignments;
    OwnedAnswer answer;
    explicit Basis(Daemon& daemon, OwnedAnswer to)
        : world(daemon.shared_.current.world), version(world->version()),
          assignments(daemon.tasks_.placer().assignments()), answer(std::move(to)) {}
    /// True: an answer would mix what was with what is, and says so.
    bool is_overtaken(const Daemon& daemon) {
        if (world == daemon.shared_.current.world && version == world->version()) return false;
        answer(fail("policies or interfaces changed meanwhile: ask again"));
        return true;
    }
};

/// Answers what is where: threads and queues one by one, then the rest. Between two slices a process may lose
/// threads, or end.
Slices Daemon::answer_status(OwnedAnswer answer) {
    TaskStatus tasks(shared_);
    status::AnswerText text;
    std::vector<int> pids;
    for (const auto& [pid, process] : tasks_.table().processes())
        pids.push_back(pid);
    std::ranges::sort(pids);
    text.begin_list("processes");
    for (const int pid : pids) {
        co_yield pause;
        auto* process = tasks_.table().find(pid);
        const auto value = process == nullptr ? std::nullopt : tasks.process(*process);
        if (!value) continue;
        text.begin_process(*value);
        const auto id = process->id;
        for (int next = 0; process != nullptr && process->id == id; process = tasks_.table().find(pid)) {
            const auto* thread = process->threads.next(next);
            if (thread == nullptr) break;
            if (const auto shown = tasks.thread(*thread, pid)) text.add(*shown, value->owner);
            next = thread->id.tid + 1;
            co_yield pause;
        }
        text.end_process();
    }
    text.begin_list("queues");
    const auto targets = shared_.current.placements().queues; // a copy: they may be worked out anew
    for (const auto& target : targets) {
        if (const auto value = queues_.status_now(target);
            !is_left_alone(*shared_.current.world, target, value))
            text.add(value);
        co_yield pause;
    }
    co_yield end_of_slice; // to write the rest and to send it all is long enough for one
    answer(status::finish(std::move(text), overview(tasks.holdings()), shared_.history.report()));
}

/// Answers what the next pass would do, by the pass's own matching and planning.
Slices Daemon::answer_plan(OwnedAnswer answer) {
    Basis basis(*this, std::move(answer));
    const auto& placements = basis.world->placements();
    status::AnswerText text;
    text.begin_list("actions");
    auto pids = inventory::PidStream::open(shared_.root);
    if (!pids) co_return basis.answer(std::unexpected(pids.error()));
    while (true) {
        const auto pid = pids->next();
        if (!pid) co_return basis.answer(std::unexpected(pid.error()));
        if (!*pid) break;
        co_yield pause;
        if (basis.is_overtaken(*this)) co_return;
        auto opened = inventory::ProcessScan::open(shared_.root, **pid, &tasks_.sources());
        if (!opened) co_return basis.answer(std::unexpected(opened.error()));
        if (!*opened) continue;
        auto& scan = **opened;
        const auto policy = tasks_.match(scan);
        if (!policy && !tasks_.must_look_at(scan, scan.parent())) continue;
        drop_others(basis.assignments, scan.id(), policy);
        while (!scan.step(a_part)) {
            co_yield pause;
            if (basis.is_overtaken(*this)) co_return;
        }
        const auto threads = scan.take_threads();
        if (!threads) co_return basis.answer(std::unexpected(threads.error()));
        for (unsigned index = 0; index < threads->size(); ++index) {
            const auto action = plan_thread(scan, policy, (*threads)[index], index, basis.assignments).action;
            if (action) text.add(*action, scan.facts().uid());
            co_yield pause;
            if (basis.is_overtaken(*this)) co_return;
        }
    }
    const auto targets = placements.queues; // a copy: they may be worked out anew
    for (const auto& target : targets) {
        if (const auto action = queues_.plan(target)) text.add(*action, OwnedText::no_owner);
        co_yield pause;
        if (basis.is_overtaken(*this)) co_return;
    }
    for (const auto& subject : queues_.unwanted()) {
        if (const auto action = queues_.plan_restore(subject)) text.add(*action, OwnedText::no_owner);
        co_yield pause;
        if (basis.is_overtaken(*this)) co_return;
    }
    co_yield end_of_slice;
    const auto crowdings = planner::crowdings(placements, basis.assignments);
    basis.answer(status::finish_plan(std::move(text), placements.problems,
                                     crowdings.empty() ? nullptr : &crowdings.front()));
}

/// The pass would drop what is known of another process, or of one that was under another policy.
void Daemon::drop_others(planner::Assignments& assignments, const TaskId& id,
                         std::optional<std::size_t> policy) {
    const auto* known = tasks_.table().find(id.tid);
    if (known == nullptr || (known->id == id && known->policy == policy)) return;
    assignments.drop(known->id);
    for (const auto& thread : known->threads)
        assignments.drop(thread.id);
}

/// The plan of the next pass for one thread.
planner::ThreadPlan Daemon::plan_thread(const inventory::ProcessScan& scan, std::optional<std::size_t> policy,
                                        const inventory::Thread& thread, unsigned index,
                                        planner::Assignments& assignments) {
    static const std::vector<std::string> none;
    const auto id = scan.id();
    const auto* known = tasks_.table().find(id.tid);
    if (known != nullptr && (known->id != id || known->policy != policy)) known = nullptr;
    auto view = view_of(id, policy, known);
    if (policy && known == nullptr) view.nics = &none;
    const bool is_whole = thread.allowed.contains(shared_.current.placements().online);
    view.cpuset = is_whole ? nullptr : tasks_.sources().cpuset(id.tid);
    const int creator = thread.id == id ? scan.parent() : id.tid;
    return tasks_.placer().plan(known, {view, thread, index, creator}, assignments);
}

/// Answers which policy wants a process, why, and where each of its threads belongs.
Slices Daemon::answer_explain(int pid, OwnedAnswer answer) {
    using Clock = std::chrono::steady_clock;
    Basis basis(*this, std::move(answer));
    auto opened = inventory::ProcessScan::open(shared_.root, pid, &tasks_.sources());
    if (!opened || !*opened) co_return basis.answer(fail("there is no such process", std::to_string(pid)));
    auto scan = std::move(**opened);
    const auto& world = *basis.world;
    const ProcessLineage lineage(shared_.root, tasks_.table(), world.policies());
    auto verdicts = world.matcher().explain(*scan.shared_facts(), lineage);
    // On a busy machine the command line of a process comes later than the loop waits for it.
    const auto until = Clock::now() + longest_wait;
    auto* lines = tasks_.sources().command_lines();
    while (lines != nullptr && scan.shared_facts()->is_silent() && Clock::now() < until) {
        constexpr timespec patience{0, 100'000};
        pollfd late{lines->fd(), POLLIN, 0};
        ::ppoll(&late, 1, &patience, nullptr);
        co_yield end_of_slice; // the loop takes the answer
        if (basis.is_overtaken(*this)) co_return;
        auto again = inventory::ProcessScan::open(shared_.root, pid, &tasks_.sources());
        if (!again || !*again || (*again)->id() != scan.id()) break; // it has ended
        scan = std::move(**again);
        verdicts = world.matcher().explain(*scan.shared_facts(), lineage);
    }
    std::optional<std::size_t> policy;
    for (const auto& verdict : verdicts)
        if (verdict.matched) policy = verdict.policy;
    auto value = explain_process(world, scan, std::move(verdicts));
    while (!scan.step(a_part)) {
        co_yield pause;
        if (basis.is_overtaken(*this)) co_return;
    }
    const auto threads = scan.take_threads();
    if (!threads) co_return basis.answer(std::unexpected(threads.error()));
    status::AnswerText text;
    text.begin_list("threads");
    for (unsigned index = 0; index < threads->size(); ++index) {
        const auto& thread = (*threads)[index];
        auto plan = plan_thread(scan, policy, thread, index, basis.assignments);
        text.add(explain_thread(world, policy, thread, index, std::move(plan), value), value);
        co_yield pause;
        if (basis.is_overtaken(*this)) co_return;
    }
    co_yield end_of_slice;
    basis.answer(status::finish(std::move(text), value));
}

/// The policies that were considered for a process, and the answer so far.
status::ProcessExplanation Daemon::explain_process(const World& world, const inventory::ProcessScan& scan,
                                                   std::vector<planner::Verdict> verdicts) {
    const auto id = scan.id();
    status::ProcessExplanation value{.pid = id.tid,
                                     .owner = scan.facts().uid(),
                                     .comm = scan.comm(),
                                     .policy = {},
                                     .considered = {},
                                     .nics = {},
                                     .nics_note = {},
                                     .fenced_unit = {},
                                     .fence_state = {}};
    if (const auto* known = tasks_.table().find(id.tid)) {
        value.nics = known->nics;
        value.nics_note = nic_note(world, *known);
        value.way = known->way;
    }
    for (auto& verdict : verdicts) {
        const auto& policy = world.policy(verdict.policy);
        if (verdict.matched) value.policy = policy.name;
        value.considered.push_back({policy.name, policy.match_at, std::move(verdict)});
    }
    for (const auto& behaviour : shared_.behaviours)
        behaviour->explain(scan, value);
    value.released = serves_released_queue(scan, world.placements(), shared_.releases) ||
                     (!value.policy.empty() && !tasks_.match(scan));
    return value;
}

/// Explains a thread, which may be kept off CPUs with its process. `policy`: that wants the process.
status::ThreadExplanation Daemon::explain_thread(const World& world, std::optional<std::size_t> policy,
                                                 const inventory::Thread& thread, unsigned index,
                                                 planner::ThreadPlan plan, status::ProcessExplanation& of) {
    status::ThreadExplanation value{.thread = thread, .plan = std::move(plan)};
    const auto* known = tasks_.table().find(of.pid, thread.id);
    const auto* joined = known == nullptr ? nullptr : known->joined.get();
    if (of.released) value.plan.action.reset(); // it is not changed until it is taken back
    if (policy) {
        const auto& wanted_by = world.policy(*policy);
        value.rule = planner::rule_of(wanted_by, thread.comm, index, joined);
        if (planner::is_in_force(wanted_by, joined)) value.joined = *joined;
        value.decided_by = decided_by(wanted_by, value);
    }
    if (value.plan.kept_off && !of.released) of.kept_off = value.plan.kept_off;
    if (value.plan.target) value.reason = planner::reason_of(world.placements(), *value.plan.target);
    if (const auto* cpuset = tasks_.sources().cpuset(of.pid)) value.cpuset = *cpuset;
    if (const auto record = shared_.journal().find(machine::TaskMask{thread.id, of.pid, {}}))
        value.original = record->original;
    return value;
}

void Daemon::status(OwnedAnswer answer) {
    if (is_stopping_) return answer(fail("the daemon is stopping"));
    work().add(answer_status(std::move(answer)));
}

void Daemon::plan(OwnedAnswer answer) {
    if (is_stopping_) return answer(fail("the daemon is stopping"));
    work().add(answer_plan(std::move(answer)));
}

void Daemon::explain(const std::string& subject, OwnedAnswer answer) {
    if (is_stopping_) return answer(fail("the daemon is stopping"));
    std::vector<status::QueueStatus> found;
    const auto* nic = shared_.current->machine().nic(subject);
    for (const auto& target : shared_.current.placements().queues) {
        const auto* irq = std::get_if<planner::IrqMask>(&target.subject);
        const bool is_irq =
            irq != nullptr && (subject == "irq:" + std::to_string(irq->irq) || subject == irq->label);
        if (!is_irq && (nic == nullptr || target.nic != nic->name)) continue;
        if (auto value = queues_.status(target); !is_left_alone(*shared_.current.world, target, value))
            found.push_back(std::move(value));
    }
    if (!found.empty() || nic != nullptr) return answer(status::answer(subject, found));
    if (const auto note = interrupt_note(shared_.root, *shared_.current.world, subject); !note.empty())
        return answer(status::answer(subject, found, note));
    if (subject.starts_with("irq:")) return answer(fail("there is no such interrupt", subject));
    for (const auto& fault : loading_.status().faults)
        if (fault.policy == subject)
            return answer(fail("the file of this policy has errors: " + fault.mend, subject));
    const auto tid = parse_number<int>(subject);
    if (!tid) return answer(fail("neither a PID, nor an interface, irq:NUMBER, unit or policy", subject));
    const auto pid = inventory::read_process_id(shared_.root, *tid);
    if (!pid) return answer(fail("there is no such process or thread", subject));
    work().add(answer_explain(*pid, std::move(answer)));
}

Result<std::string> Daemon::history(const std::string& kind) {
    // To find that there is nothing of a kind takes a look at everything, if it is none that is kept.
    if (!kind.empty() && std::ranges::count(state::measurement_kinds, kind) == 0)
        return fail("no such kind of measurement", kind);
    return status::to_text(shared_.history.history(kind));
}

Result<std::string> Daemon::names() {
    std::set<int> pids;
    for (const auto& [pid, process] : tasks_.table().processes())
        pids.insert(pid);
    return status::names_text(shared_.settings.policy_folders, pids);
}

} // namespace affinityd::core
