// SPDX-License-Identifier: Apache-2.0
// The daemon's answers: status, plan, explain, and the notes and problems in them.
#include "app/answers.hpp"

#include "app/daemon.hpp"
#include "app/task_status.hpp"
#include "base/text.hpp"
#include "host/self.hpp"
#include "inventory/descriptors.hpp"
#include "inventory/process_files.hpp"
#include "planner/balance.hpp"
#include "status/answer_text.hpp"
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

namespace affinityd::app {

namespace {

using policy::Model;

constexpr std::chrono::milliseconds longest_wait{200}; ///< for the arguments of a process

/// True if `full` has no interface to go by.
bool acts_as_process(const World& world, std::size_t policy) {
    const auto& resolved = world.placements().policies[policy];
    return resolved.active && resolved.policy->model == Model::full && resolved.nics.empty();
}

constexpr const char* as_process = "affinity: full acts as process";

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
        const auto* nic =
            lanes.is_guess || lanes.nics.empty() ? nullptr : world.machine().nic(lanes.nics.front());
        if (nic == nullptr) continue;
        const auto queues =
            std::ranges::count(nic->queues, machine::Direction::rx, &netdev::Queue::direction);
        if (queues == 0 || static_cast<std::size_t>(queues) == lanes.lanes.size()) continue;
        return fmt::format("{} has {} queue{} for {} worker{} (ethtool -L changes that)", nic->name, queues,
                           queues == 1 ? "" : "s", lanes.lanes.size(), lanes.lanes.size() == 1 ? "" : "s");
    }
    return {};
}

/// The note of a policy with this many processes; "": there is nothing to say.
std::string policy_nic_note(const World& world, std::size_t policy, std::size_t processes) {
    const auto& names = world.policy(policy).nics;
    const auto is_named = [&](const netdev::Nic& nic) {
        return std::ranges::any_of(names, [&](const auto& pattern) {
            return nic.is_called([&](std::string_view name) { return pattern.matches(name); });
        });
    };
    if (!world.policy(policy).nics_auto && !names.empty() &&
        std::ranges::none_of(world.machine().nics, is_named))
        return "no interface here is named like its nics: see affinityctl check";
    if (processes == 0 || !world.policy(policy).nics_auto || !acts_as_process(world, policy)) return {};
    return fmt::format("no NIC is known to serve its processes: {}", as_process);
}

/// Policies with processes in other network namespaces, or in cpusets without the CPUs near the NICs.
std::vector<planner::Problem> nic_problems(const World& world, const TaskTable& tasks) {
    struct Kept {
        std::size_t processes = 0, lanes = 0; ///< lanes that the first of them may use
        int first = 0;
    };
    std::map<std::size_t, Kept> elsewhere, cut; // by policy
    const auto add = [](Kept& kept, int pid, std::size_t lanes) {
        if (kept.processes++ == 0 || pid < kept.first) kept = {kept.processes, lanes, pid};
    };
    for (const auto& [pid, process] : tasks.processes()) {
        const auto& resolved = world.placements().policies[process.policy];
        if (process.is_elsewhere) add(elsewhere[process.policy], pid, 0);
        if (!resolved.active || process.is_elsewhere || !process.cpuset.cpus) continue;
        const auto usable = static_cast<std::size_t>(
            std::ranges::count_if(resolved.all_lanes, [&](const planner::Slot& lane) {
                return lane.cpus.intersects(*process.cpuset.cpus);
            }));
        if (usable != resolved.all_lanes.size()) add(cut[process.policy], pid, usable);
    }
    std::vector<planner::Problem> problems;
    for (const auto& [policy, kept] : elsewhere) {
        const bool is_one = kept.processes == 1;
        auto text = fmt::format(
            "process {}{} in another network namespace: which NICs serve {} is not known", kept.first,
            is_one ? " is" : fmt::format(" and {} more are", kept.processes - 1), is_one ? "it" : "them");
        if (world.policy(policy).model == Model::full) text += std::string("; ") + as_process;
        problems.push_back(
            {world.policy(policy).name, "nics", std::move(text), "name the interfaces in nics"});
    }
    for (const auto& [policy, kept] : cut)
        problems.push_back(
            {world.policy(policy).name, "nics",
             fmt::format("the cpuset of process {}{} has {} of the {} places for workers near the NIC",
                         kept.first,
                         kept.processes == 1 ? "" : fmt::format(" (and of {} more)", kept.processes - 1),
                         kept.lanes, world.placements().policies[policy].all_lanes.size()),
             "give the policy cpus that the unit's AllowedCPUs= has"});
    return problems;
}

/// Says that no process of the policy was ever seen, or that its tasks had CPUs of their own (CPUAffinity= of
/// their unit, taskset), which it replaced; "": neither. To be asked once all processes have been seen.
std::string match_note(const World& world, const TaskTable& tasks, const state::Journal& journal,
                       std::size_t index) {
    const auto& policy = world.policy(index);
    if (policy.model == policy::Model::none || policy.model == policy::Model::irq) return {};
    if (!world.has_seen(policy.name)) {
        const auto unit = unit_without_ending(policy.match);
        return unit.empty() ? "no process has matched it yet: see affinityctl check"
                            : fmt::format("no process can match it: write unit: {}.service", unit);
    }
    std::size_t count = 0;
    CpuSet own;
    for (const auto& [pid, process] : tasks.processes()) {
        if (process.policy != index) continue;
        const auto record = journal.find(planner::TaskMask{process.id, pid, {}});
        if (!record) continue;
        const CpuSet possible =
            process.cpuset.cpus.value_or(world.placements().online) & world.placements().online;
        if (record->original.cpus().contains(possible)) continue;
        own |= record->original.cpus();
        ++count;
    }
    if (count == 0) return {};
    return fmt::format(
        "{} of its processes had CPUs of {} own before ({}: CPUAffinity= of a unit, or taskset), which "
        "it replaces; prior: keep leaves them",
        count, count == 1 ? "its" : "their", own.to_list());
}

/// Policies that keep all others off their CPUs, while none of their own programs runs. To be asked once all
/// processes have been seen.
std::vector<planner::Problem> idle_claims(const World& world, const TaskTable& tasks) {
    const auto& placements = world.placements();
    if (placements.claims.empty()) return {};
    std::set<std::string_view> in_use;
    for (const auto& [pid, process] : tasks.processes())
        in_use.insert(world.policy(process.policy).name);
    std::vector<planner::Problem> problems;
    for (const auto& claim : placements.claims) {
        const auto& policy = *placements.find(claim.policy)->policy;
        if (policy.model == policy::Model::irq || policy.exclusive != policy::Exclusive::always ||
            in_use.contains(claim.policy))
            continue;
        const bool is_one = claim.cpus.count() == 1;
        problems.push_back({claim.policy, "exclusive",
                            fmt::format("CPU{} {} {} barred to all others, and no process is under this "
                                        "policy now",
                                        is_one ? "" : "s", claim.cpus.to_list(), is_one ? "is" : "are"),
                            "start its application, or affinityctl release " + claim.policy});
    }
    return problems;
}

/// Why no policy places an interrupt, named as irq:NUMBER or by its label. An Error: it does not exist. No
/// value: that is no name of an interrupt.
std::optional<Result<std::string>> interrupt_note(const host::Root& root, const World& world,
                                                  const std::string& subject) {
    constexpr std::string_view prefix = "irq:";
    const auto& irqs = world.machine().irqs;
    const bool is_number = subject.starts_with(prefix);
    const auto number = parse_number<unsigned>(is_number ? subject.substr(prefix.size()) : "");
    if (is_number) {
        if (!number) return fail("not the number of an interrupt", subject);
        // One that was requested a moment ago is not in the table yet.
        if (irqs.find(*number) == nullptr && !root.proc().exists("irq/" + std::to_string(*number)))
            return fail("this interrupt does not exist", subject);
    } else if (std::ranges::none_of(irqs.irqs, [&](const irq::Irq& irq) {
                   return std::ranges::find(irq.actions, subject) != irq.actions.end();
               })) {
        return std::nullopt;
    }
    for (const auto& [nic, vectors] : world.machine().vectors)
        for (const auto& vector : vectors)
            if (is_number ? vector.irq == *number : vector.label == subject)
                return "an interrupt of " + nic + ": no policy places it";
    return "belongs to no NIC, and no policy names it in irqs";
}

/// Says that a policy does not do what it says, and why.
std::string policy_note(const World& world, std::size_t policy, std::size_t processes,
                        const planner::ListenerPlan* plan) {
    if (auto note = policy_nic_note(world, policy, processes); !note.empty()) return note;
    const auto& resolved = world.placements().policies[policy];
    const auto& online = world.placements().online;
    if (processes > 0 && planner::is_pinned_only(resolved, plan)) return planner::pinned_note(resolved);
    if (planner::lacks_flow_tables(resolved, world.placements()))
        return "steer: flows brings nothing here: there is no table of flows (rps_sock_flow_entries) in the "
               "kernel, or none in this network namespace";
    if (processes > 0)
        if (auto note = queues_note(world, resolved); !note.empty()) return note;
    if (resolved.policy->model == policy::Model::irq || !planner::restricts_nothing(resolved, online))
        return {};
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
std::vector<status::PolicyStatus> policy_status(const Shared& shared, const Holdings& holdings,
                                                const Steering& steering) {
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
            for (const auto& lane : lanes.lanes)
                shown.cores.push_back(lane.cpus);
        }
        if (const auto held = holdings.find(policy.name); held != holdings.end()) value.held = held->second;
        for (const auto& slot : policy.allow_join)
            value.held.joined.slots.try_emplace(slot);
        const auto& corrected = shared.executor.corrected();
        if (const auto found = corrected.find(policy.name); found != corrected.end())
            value.held.drift_put_right = found->second;
        value.packets = steering.packets(policy.name);
        const auto& plan = value.packets.steer;
        value.note = policy_note(world, i, value.held.processes, plan ? &*plan : nullptr);
        list.push_back(std::move(value));
    }
    return list;
}

/// Refusals and outcomes.
void add_outcomes(const enforcer::Executor& executor, status::Counters& into) {
    for (const auto& [subject, refusal] : executor.refusals().entries())
        into.refused.emplace_back(subject, to_string(refusal));
    const auto& counts = executor.counts();
    for (std::size_t i = 0; i <= static_cast<std::size_t>(enforcer::Outcome::failed); ++i)
        if (counts[i] > 0)
            into.outcomes[std::string(to_string(static_cast<enforcer::Outcome>(i)))] = counts[i];
}

/// There are no process events: tells how late a daemon with a `pass` this often is, and what helps.
std::vector<planner::Problem> event_problems(const EventQueue& events, std::chrono::seconds pass,
                                             const host::Root& root) {
    if (events.absence().empty()) return {};
    // ECONNREFUSED: of another network namespace; EPERM: without the capability, or in a user namespace.
    const bool is_elsewhere = events.absence().find("Connection refused") != std::string::npos;
    const std::string remedy =
        host::is_container(root)
            ? "start the container with --privileged --network=host --pid=host (podman, docker)"
            : fmt::format(
                  "systemctl cat affinityd; remove {} from its drop-in; then systemctl daemon-reload; "
                  "systemctl restart affinityd",
                  is_elsewhere ? "PrivateNetwork=" : "PrivateUsers= or CapabilityBoundingSet=");
    return {{{},
             "process events",
             fmt::format("new processes and threads are placed up to {} s late (services about 1 s), as the "
                         "kernel sends none: {}",
                         pass.count(), events.absence()),
             remedy}};
}

/// The daemon lacks rights for what is wanted now: tells which help.
std::vector<planner::Problem> right_problems(const enforcer::Executor& executor) {
    std::vector<planner::Problem> list;
    const auto count = std::ranges::count(executor.refusals().entries(), enforcer::Outcome::not_permitted,
                                          [](const auto& entry) { return entry.second.outcome; });
    if (count > 0)
        list.push_back(
            {{},
             "rights",
             fmt::format("{} of the changes now wanted {} not permitted", count, count == 1 ? "is" : "are"),
             "tasks of other users need CAP_SYS_NICE; interrupts and queues need root, and a /proc and /sys "
             "that can be written"});
    return list;
}

std::string silence_text(const TaskId& process) {
    return fmt::format(
        "the command line of pid {} cannot be read: its memory is on a file system that does not answer",
        process.tid);
}

/// Processes whose arguments cannot be read. `lines` may be null.
std::vector<planner::Problem> silence_problems(const inventory::CommandLines* lines) {
    std::vector<planner::Problem> problems;
    if (lines == nullptr) return problems;
    for (const auto& process : lines->silent())
        problems.push_back({{},
                            fmt::format("process {}", process.tid),
                            silence_text(process),
                            fmt::format("ps -fp {}", process.tid)});
    return problems;
}

/// One problem whose text has only other numbers in it is the same.
std::string key_of(const planner::Problem& problem) {
    std::string text = problem.policy + '\n' + problem.subject + '\n';
    std::ranges::copy_if(problem.message, std::back_inserter(text),
                         [](unsigned char byte) { return std::isdigit(byte) == 0; });
    return text;
}

} // namespace

std::string nic_note(const World& world, const KnownProcess& process) {
    const auto& policy = world.policy(process.policy);
    if (policy.model != Model::full && policy.model != Model::irq) return {};
    std::string why;
    if (process.is_elsewhere)
        why = "it is in another network namespace: its NICs are not known";
    else if (policy.nics_auto && process.nics.empty())
        why = "no socket of it has named a NIC";
    if (why.empty()) return {};
    const bool is_alone = process.is_elsewhere && policy.model == Model::full;
    return is_alone || acts_as_process(world, process.policy) ? fmt::format("{}; {}", why, as_process) : why;
}

void log_silent(inventory::CommandLines* lines, Log& log) {
    if (lines == nullptr) return;
    for (const auto& process : lines->take_silent())
        log.warn(silence_text(process), "command line not read");
}

std::vector<status::ProblemStatus> Daemon::present_problems() {
    const auto& world = *shared_.current.world;
    std::vector<status::ProblemStatus> list;
    const auto add = [&](const char* kind, std::vector<planner::Problem> problems) {
        for (auto& problem : problems)
            list.push_back({std::move(problem), kind, {}});
    };
    add("file", loading_.problems());
    add("policy", world.placements().problems);
    add("nic", nic_problems(world, tasks_.table()));
    // Until the first pass is over, not all processes have been seen.
    if (last_pass_ != Time{}) add("claim", idle_claims(world, tasks_.table()));
    for (const auto& fault : shared_.journal().faults())
        add("journal", {{{}, fault.subject, "the undo journal: " + fault.message}});
    add("process", silence_problems(tasks_.sources().command_lines()));
    if (const auto* listeners = tasks_.sources().listeners()) {
        if (const auto fault = listeners->fault())
            add("listener", {{{}, "listen", "the list of listeners cannot be read: " + fault->to_string()}});
        if (const auto known = listeners->list(); known && known->is_truncated)
            add("listener",
                {{{}, "listen", "more sockets listen on ports of policies than are read", "ss -ltunp"}});
    }
    add("events", event_problems(tasks_.events(), shared_.settings.reconcile_interval, shared_.root));
    add("rights", right_problems(shared_.executor));
    add("unit", units_.problems());
    add("steering", steering_.problems());
    return list;
}

/// All that there are now, the newest first.
std::vector<status::ProblemStatus> Daemon::problems() {
    const auto now = std::chrono::system_clock::now();
    std::unordered_map<std::string, Time> still;
    auto list = present_problems();
    for (auto& [problem, kind, since] : list) {
        auto key = key_of(problem);
        const auto known = known_problems_.find(key);
        since = known == known_problems_.end() ? now : known->second;
        still.emplace(std::move(key), since);
    }
    known_problems_ = std::move(still);
    std::ranges::stable_sort(list, std::ranges::greater{}, &status::ProblemStatus::since);
    return list;
}

status::Overview Daemon::overview(const Holdings& holdings) {
    status::Overview overview;
    overview.instance = {
        ::getpid(),      !shared_.acts(), started_at_, loaded_at_, shared_.current->machine().topology.online,
        shared_.settings};
    overview.counters = {.journal = shared_.journal().size(),
                         .passes = work().passes(),
                         .passing = work().passing(),
                         .last_pass = last_pass_,
                         .by_event = tasks_.events().handled(),
                         .events_lost = events_lost_};
    add_outcomes(shared_.executor, overview.counters);
    overview.policies = policy_status(shared_, holdings, steering_);
    for (std::size_t i = 0; i < overview.policies.size(); ++i) {
        auto& policy = overview.policies[i];
        if (policy.note.empty() && work().passes() > 1)
            policy.note = match_note(*shared_.current.world, tasks_.table(), shared_.journal(), i);
    }
    for (const auto& process : shared_.releases.processes())
        overview.released.push_back(process.tid);
    std::ranges::sort(overview.released);
    overview.load = loading_.status();
    overview.problems = problems();
    overview.crowding = balancer_.crowding();
    overview.units = units_.status();
    for (const auto& writer : writers_.list())
        overview.other_writers.push_back({writer.name, writer.where, writer.note, writer.keeps_off});
    overview.floods = tasks_.events().floods(EventQueue::Clock::now());
    for (auto& flood : overview.floods)
        flood.user = tasks_.sources().user(flood.uid);
    return overview;
}

/// Long answers are worked out in slices.
class Daemon::Inquiry : public Job {
  public:
    Inquiry(Daemon& daemon, OwnedAnswer answer) : daemon_(daemon), answer_(std::move(answer)) {}
    bool step(const OutOfTime& out_of_time) final {
        if (!fault_ && !is_listed_) is_listed_ = list(out_of_time);
        // To write the rest and to send it all is long enough for a slice of its own.
        if (!fault_ && (!is_listed_ || !std::exchange(is_last_, true))) return false;
        if (fault_)
            answer_(std::unexpected(std::move(*fault_)));
        else
            answer_(finish());
        return true;
    }

  protected:
    /// Lists what there may be thousands of. True: all of it, or there is a fault.
    virtual bool list(const OutOfTime& out_of_time) = 0;
    virtual OwnedText finish() = 0;
    bool give_up(Error why) {
        fault_ = std::move(why);
        return true;
    }
    /// The answer rests on the policies in force when it began, and on a copy of the assignments, as looking
    /// must not assign slots. True: a reload has replaced the policies since, and the answer says so.
    bool is_overtaken() {
        if (!world_) {
            world_ = daemon_.shared_.current.world;
            assignments_ = daemon_.tasks_.placer().assignments();
        }
        return world_ != daemon_.shared_.current.world &&
               give_up({"the policies were reloaded meanwhile: ask again", {}, 0});
    }
    Daemon& daemon_;
    status::AnswerText text_;
    std::shared_ptr<World> world_;
    planner::Assignments assignments_;

  private:
    OwnedAnswer answer_;
    std::optional<Error> fault_;
    bool is_listed_ = false, is_last_ = false;
};

/// Answers what is where: threads and queues one by one, then the rest.
class Daemon::StatusJob final : public Inquiry {
  public:
    StatusJob(Daemon& daemon, OwnedAnswer answer)
        : Inquiry(daemon, std::move(answer)), tasks_(daemon.shared_, daemon.tasks_) {}

  private:
    /// The process that is told of now.
    struct Begun {
        TaskId id;
        uid_t owner;
        int next_tid = 0;
    };
    bool list(const OutOfTime& out_of_time) override {
        if (!pids_) begin();
        while (!pids_->empty()) {
            if (!add_process(pids_->back(), out_of_time)) return false;
            pids_->pop_back();
            if (out_of_time()) return false;
        }
        if (!targets_) {
            targets_ = daemon_.shared_.current.placements().queues;
            text_.begin_list("queues");
        }
        while (next_queue_ < targets_->size()) {
            text_.add(daemon_.queues_.status_now((*targets_)[next_queue_++]));
            if (out_of_time()) return false;
        }
        return true;
    }
    OwnedText finish() override {
        return status::finish(std::move(text_), daemon_.overview(tasks_.holdings()),
                              status::to_text(daemon_.bookkeeping_.costs()),
                              status::to_text(daemon_.bookkeeping_.measurement()));
    }
    void begin() {
        pids_.emplace();
        for (const auto& [pid, process] : daemon_.tasks_.table().processes())
            pids_->push_back(pid);
        std::ranges::sort(*pids_, std::greater{});
        text_.begin_list("processes");
    }
    [[nodiscard]] bool add_process(int pid, const OutOfTime& out_of_time);

    TaskStatus tasks_;
    std::optional<std::vector<int>> pids_; ///< still to be told of, in descending order
    std::optional<Begun> begun_;           ///< the last of pids_
    /// Queues to be told of; a copy, as they may be worked out anew between two slices. No value: not yet.
    std::optional<std::vector<planner::QueueTarget>> targets_;
    std::size_t next_queue_ = 0; ///< of `targets_`
};

/// True: it has been told of. Between two slices it may have lost threads, or have ended.
bool Daemon::StatusJob::add_process(int pid, const OutOfTime& out_of_time) {
    const auto* process = daemon_.tasks_.table().find(pid);
    if (!begun_) {
        if (process == nullptr) return true;
        const auto value = tasks_.process(*process);
        if (!value) return true;
        begun_ = Begun{process->id, value->owner};
        text_.begin_process(*value);
    }
    const bool is_there = process != nullptr && process->id == begun_->id;
    for (auto at = is_there ? process->threads.count_below(begun_->next_tid) : 0;
         is_there && at < process->threads.size(); ++at) {
        const auto& thread = *(process->threads.begin() + static_cast<std::ptrdiff_t>(at));
        if (const auto value = tasks_.thread(thread, pid)) text_.add(*value, begun_->owner);
        begun_->next_tid = thread.id.tid + 1;
        if (at + 1 < process->threads.size() && out_of_time()) return false;
    }
    text_.end_process();
    begun_.reset();
    return true;
}

/// Answers what the next pass would do, by the pass's own matching and planning.
class Daemon::PlanJob final : public Inquiry {
  public:
    PlanJob(Daemon& daemon, OwnedAnswer answer) : Inquiry(daemon, std::move(answer)) {
        text_.begin_list("actions");
    }

  private:
    /// The process that is planned now.
    struct Looking {
        inventory::ProcessScan scan;
        std::optional<std::size_t> policy{}; ///< that wants it
        std::vector<inventory::Thread> threads{};
        std::size_t next = 0; ///< of `threads`
        bool is_read = false;
    };
    bool list(const OutOfTime& out_of_time) override {
        if (is_overtaken()) return true;
        if (!pids_) {
            auto pids = inventory::PidStream::open(daemon_.shared_.root);
            if (!pids) return give_up(pids.error());
            pids_ = std::move(*pids);
        }
        return list_tasks(out_of_time) && list_queues(out_of_time);
    }
    OwnedText finish() override {
        const auto& placements = world_->placements();
        const auto crowdings = planner::crowdings(placements, assignments_);
        return status::finish_plan(std::move(text_), placements.problems,
                                   crowdings.empty() ? nullptr : &crowdings.front());
    }
    [[nodiscard]] bool list_tasks(const OutOfTime& out_of_time);
    [[nodiscard]] bool list_queues(const OutOfTime& out_of_time);
    void begin(int pid);
    [[nodiscard]] bool decide(Looking& looking);
    [[nodiscard]] bool plan(Looking& looking, const OutOfTime& out_of_time);

    std::optional<inventory::PidStream> pids_;
    std::optional<Looking> looking_;
    std::optional<std::vector<planner::QueueTarget>> targets_; ///< no value: it has not come to queues
    std::size_t next_queue_ = 0;                               ///< of `targets_`
    std::optional<std::vector<planner::Subject>> unwanted_;    ///< queues that go back to their originals
};

bool Daemon::PlanJob::list_tasks(const OutOfTime& out_of_time) {
    while (true) {
        if (!looking_) {
            const auto pid = pids_->next().value_or(std::nullopt);
            if (!pid) return true;
            begin(*pid);
        }
        if (looking_) {
            if (!plan(*looking_, out_of_time)) return false;
            looking_.reset();
        }
        if (out_of_time()) return false;
    }
}

void Daemon::PlanJob::begin(int pid) {
    auto scan = inventory::ProcessScan::open(daemon_.shared_.root, pid, &daemon_.tasks_.sources());
    if (!scan || !*scan) return;
    looking_ = Looking{std::move(**scan)};
    if (!decide(*looking_)) looking_.reset();
}

/// Finds the policy that wants it. False: it need not be looked at.
bool Daemon::PlanJob::decide(Looking& looking) {
    const auto& scan = looking.scan;
    const auto policy = daemon_.tasks_.match(scan);
    if (!policy && !daemon_.tasks_.must_look_at(scan, scan.parent())) return false;
    looking.policy = policy;
    // The pass would drop what is known of another process, or of one that was under another policy.
    const auto* known = daemon_.tasks_.table().find(scan.id().tid);
    if (known == nullptr || (known->id == scan.id() && known->policy == policy)) return true;
    assignments_.leave(known->id);
    for (const auto& thread : known->threads)
        assignments_.leave(thread.id);
    return true;
}

bool Daemon::PlanJob::plan(Looking& looking, const OutOfTime& out_of_time) {
    if (!looking.is_read) {
        if (!looking.scan.step(out_of_time)) return false;
        if (auto threads = looking.scan.take_threads()) looking.threads = std::move(*threads);
        looking.is_read = true;
    }
    auto& tasks = daemon_.tasks_;
    const auto id = looking.scan.id();
    // Slices of events lie between those of this job.
    const auto* known = tasks.table().find(id.tid);
    if (known != nullptr && (known->id != id || known->policy != looking.policy)) known = nullptr;
    static const std::vector<std::string> none;
    auto view = view_of(id, looking.policy, known);
    if (looking.policy && known == nullptr) view.nics = &none;
    while (looking.next < looking.threads.size()) {
        const auto index = looking.next++;
        const auto& thread = looking.threads[index];
        const bool is_whole = thread.allowed.contains(world_->placements().online);
        view.cpuset = is_whole ? nullptr : tasks.sources().cpuset(id.tid);
        const int creator = thread.id == id ? looking.scan.parent() : id.tid;
        const auto plan =
            tasks.placer().plan(known, {view, thread, static_cast<unsigned>(index), creator}, assignments_);
        if (plan.action) text_.add(*plan.action, looking.scan.facts().uid());
        if (out_of_time()) return false;
    }
    return true;
}

bool Daemon::PlanJob::list_queues(const OutOfTime& out_of_time) {
    // A copy: they may be worked out anew between two slices.
    if (!targets_) targets_ = world_->placements().queues;
    while (next_queue_ < targets_->size()) {
        const auto action = daemon_.queues_.plan((*targets_)[next_queue_++]);
        if (action) text_.add(*action, OwnedText::no_owner);
        if (out_of_time()) return false;
    }
    if (!unwanted_) unwanted_ = daemon_.queues_.unwanted();
    while (!unwanted_->empty()) {
        if (const auto action = daemon_.queues_.plan_restore(unwanted_->back()))
            text_.add(*action, OwnedText::no_owner);
        unwanted_->pop_back();
        if (out_of_time()) return false;
    }
    return true;
}

/// Answers which policy wants a process, why, and where each of its threads belongs.
class Daemon::ExplainJob final : public Inquiry {
  public:
    ExplainJob(Daemon& daemon, int pid, OwnedAnswer answer) : Inquiry(daemon, std::move(answer)) {
        value_.pid = pid;
    }

  private:
    using Clock = std::chrono::steady_clock;
    bool list(const OutOfTime& out_of_time) override {
        if (is_overtaken()) return true;
        if (!scan_ && !begin()) return give_up({"there is no such process", std::to_string(value_.pid), 0});
        if (!is_considered_ && !consider()) return false;
        if (!threads_) {
            if (!scan_->step(out_of_time)) return false;
            auto threads = scan_->take_threads();
            if (!threads) return give_up(threads.error());
            threads_ = std::move(*threads);
        }
        while (next_ < threads_->size()) {
            explain(next_++);
            if (out_of_time()) return false;
        }
        return true;
    }
    OwnedText finish() override { return status::finish(std::move(text_), value_); }
    [[nodiscard]] bool begin();
    [[nodiscard]] bool consider();
    [[nodiscard]] bool await_answer();
    void explain(std::size_t index);
    [[nodiscard]] std::optional<policy::Position> decided_by(std::size_t index,
                                                             const planner::ThreadPlan& plan) const;

    status::ProcessExplanation value_;
    std::optional<inventory::ProcessScan> scan_;
    std::optional<std::size_t> policy_;
    std::optional<std::vector<inventory::Thread>> threads_;
    std::size_t next_ = 0; ///< of `threads_`
    bool is_considered_ = false;
    Clock::time_point until_{}; ///< for so long, it waits for what the process itself must answer
};

bool Daemon::ExplainJob::begin() {
    auto scan = inventory::ProcessScan::open(daemon_.shared_.root, value_.pid, &daemon_.tasks_.sources());
    if (!scan || !*scan) return false;
    scan_ = std::move(**scan);
    until_ = Clock::now() + longest_wait;
    value_.comm = scan_->comm();
    value_.owner = scan_->facts().uid();
    if (const auto* known = daemon_.tasks_.table().find(value_.pid)) {
        value_.nics = known->nics;
        value_.nics_note = nic_note(*world_, *known);
    }
    text_.begin_list("threads");
    return true;
}

/// False: an answer of the process has to come first.
bool Daemon::ExplainJob::consider() {
    const auto facts = scan_->shared_facts();
    const ProcessLineage lineage(daemon_.shared_.root, daemon_.tasks_.table(), world_->policies());
    auto verdicts = world_->matcher().explain(*facts, lineage);
    if (facts->is_silent() && await_answer()) return false;
    is_considered_ = true;
    for (auto& verdict : verdicts) {
        const auto& policy = world_->policy(verdict.policy);
        if (verdict.matched) policy_ = verdict.policy;
        value_.considered.push_back({policy.name, policy.match_at, std::move(verdict)});
    }
    if (policy_) value_.policy = world_->policy(*policy_).name;
    daemon_.units_.explain(scan_->id(), value_);
    daemon_.steering_.explain(scan_->id(), value_);
    value_.released = serves_released_queue(*scan_, world_->placements(), daemon_.shared_.releases) ||
                      (policy_ && !daemon_.tasks_.match(*scan_));
    return true;
}

/// On a busy machine the command line of a process comes later than the loop waits for it. True: the process
/// is to be considered again.
bool Daemon::ExplainJob::await_answer() {
    auto* lines = daemon_.tasks_.sources().command_lines();
    if (lines == nullptr || Clock::now() >= until_) return false;
    constexpr timespec patience{0, 100'000};
    pollfd late{lines->fd(), POLLIN, 0}; // the loop takes the answer
    ::ppoll(&late, 1, &patience, nullptr);
    auto scan = inventory::ProcessScan::open(daemon_.shared_.root, value_.pid, &daemon_.tasks_.sources());
    if (!scan || !*scan || (*scan)->id() != scan_->id()) return false; // it has ended
    scan_ = std::move(**scan);
    return true;
}

/// Where the file says what becomes of a thread: its thread rule, or the policy's `match`.
std::optional<policy::Position> Daemon::ExplainJob::decided_by(std::size_t index,
                                                               const planner::ThreadPlan& plan) const {
    const auto& thread = (*threads_)[index];
    if (!policy_ || thread.is_immovable()) return std::nullopt;
    const auto& policy = world_->policy(*policy_);
    // A lane or a group is the policy's even for a thread that a rule names.
    if (plan.target) {
        const auto rule = plan.target->distribution.rule;
        return rule == 0 ? policy.match_at : policy.threads[rule - 1].at;
    }
    const auto rule = planner::rule_of(policy, thread.comm, static_cast<unsigned>(index),
                                       daemon_.tasks_.placer().joined(thread.id));
    const bool is_the_rules =
        plan.untouched == planner::NoPlace::leave || plan.untouched == planner::NoPlace::outside;
    return rule && is_the_rules ? policy.threads[*rule].at : policy.match_at;
}

void Daemon::ExplainJob::explain(std::size_t index) {
    auto& tasks = daemon_.tasks_;
    const auto& thread = (*threads_)[index];
    const auto* known = tasks.table().find(value_.pid);
    if (known != nullptr && known->id != scan_->id()) known = nullptr;
    const CpuSet* cpuset = tasks.sources().cpuset(value_.pid);
    auto view = view_of(scan_->id(), policy_, known);
    view.cpuset = cpuset;
    const int creator = thread.id == scan_->id() ? scan_->parent() : value_.pid;
    status::ThreadExplanation value{
        .thread = thread,
        .plan =
            tasks.placer().plan(known, {view, thread, static_cast<unsigned>(index), creator}, assignments_)};
    if (value_.released) value.plan.action.reset(); // it is not changed until it is taken back
    value.decided_by = decided_by(index, value.plan);
    if (policy_) {
        const auto& policy = world_->policy(*policy_);
        const auto* joined = tasks.placer().joined(thread.id);
        value.rule = planner::rule_of(policy, thread.comm, static_cast<unsigned>(index), joined);
        if (planner::is_in_force(policy, joined)) value.joined = *joined;
    }
    if (value.plan.kept_off && !value_.released) value_.kept_off = value.plan.kept_off;
    if (value.plan.target) value.reason = planner::reason_of(world_->placements(), *value.plan.target);
    if (cpuset != nullptr) value.cpuset = *cpuset;
    if (const auto record = daemon_.shared_.journal().find(machine::TaskMask{thread.id, value_.pid, {}}))
        value.original = record->original;
    text_.add(value, value_);
}

void Daemon::status(OwnedAnswer answer) {
    if (is_stopping_) return answer(fail("the daemon is stopping"));
    work().add(std::make_unique<StatusJob>(*this, std::move(answer)));
}

void Daemon::plan(OwnedAnswer answer) {
    if (is_stopping_) return answer(fail("the daemon is stopping"));
    work().add(std::make_unique<PlanJob>(*this, std::move(answer)));
}

void Daemon::explain(const std::string& subject, OwnedAnswer answer) {
    if (is_stopping_) return answer(fail("the daemon is stopping"));
    std::vector<status::QueueStatus> found;
    const auto* nic = shared_.current->machine().nic(subject);
    for (const auto& target : shared_.current.placements().queues) {
        const auto* irq = std::get_if<planner::IrqMask>(&target.subject);
        const bool is_irq =
            irq != nullptr && (subject == "irq:" + std::to_string(irq->irq) || subject == irq->label);
        if ((nic != nullptr && target.nic == nic->name) || is_irq) found.push_back(queues_.status(target));
    }
    if (!found.empty() || nic != nullptr) return answer(status::answer(subject, found));
    if (auto note = interrupt_note(shared_.root, *shared_.current.world, subject)) {
        if (!*note) return answer(std::unexpected(std::move(note->error())));
        return answer(status::answer(subject, found, **note));
    }
    const auto tid = parse_number<int>(subject);
    if (!tid) return answer(fail("neither a PID, nor an interface, irq:NUMBER, unit or policy", subject));
    const auto pid = inventory::read_process_id(shared_.root, *tid);
    if (!pid) return answer(fail("there is no such process or thread", subject));
    work().add(std::make_unique<ExplainJob>(*this, *pid, std::move(answer)));
}

Result<std::string> Daemon::history(const std::string& kind) {
    // To find that there is nothing of a kind takes a look at everything, if it is none that is kept.
    if (!kind.empty() && std::ranges::count(state::measurement_kinds, kind) == 0)
        return fail("no such kind of measurement", kind);
    return status::to_text(bookkeeping_.history(kind));
}

} // namespace affinityd::app
