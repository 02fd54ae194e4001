// SPDX-License-Identifier: Apache-2.0
#include "app/daemon.hpp"

#include "app/answers.hpp"
#include "app/log.hpp"
#include "app/pass.hpp"
#include "app/tasks.hpp"
#include "app/undo.hpp"
#include "base/counted.hpp"
#include "base/text.hpp"
#include "inventory/process_files.hpp"
#include "machine/reader.hpp"
#include "status/changes.hpp"
#include "status/report_text.hpp"
#include "topology/reader.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

namespace affinityd::app {

namespace {

/// What was released by hand is taken up again by those who ask for it only: not by the version that had to
/// stay of a file with errors, and not because another policy was saved.
Releases::Names those_that_stay(const Loading& loading, const World* before, const World& now,
                                ReloadReason reason) {
    auto names = loading.faulty();
    if (reason == ReloadReason::asked || before == nullptr) return names;
    for (const auto& policy : now.policies().policies) {
        const auto* resolved = before->placements().find(policy.name);
        if (resolved != nullptr && resolved->policy->text_hash == policy.text_hash) names.insert(policy.name);
    }
    return names;
}

/// A file of the runtime folder; "": nothing is read or written.
std::string runtime_file(const Daemon::Parts& parts, const char* name) {
    const bool is_real = parts.enforcer.acts() && !parts.settings.dry_run;
    return is_real ? parts.settings.runtime_dir + "/" + name : std::string();
}

state::FormerSlots former_slots(const Daemon::Parts& parts) {
    return state::FormerSlots(runtime_file(parts, "slots"));
}

} // namespace

Daemon::Daemon(Parts parts)
    : parts_(std::move(parts)), shared_{Loading(parts_.settings, parts_.enforcer.acts(), parts_.log),
                                        Problems({shared_.loading, shared_.current, carrying_.executor,
                                                  tasks_, units_, steering_, parts_.root, parts_.settings}),
                                        PassAnswers({parts_.log, [this] { return units_.awaits_systemd(); },
                                                     parts_.enforcer.acts()}),
                                        LatencySource(parts_.root)},
      carrying_{enforcer::Executor(std::move(parts_.journal), parts_.enforcer),
                KernelChanges(carrying_.executor),
                Undo(parts_.root, carrying_.executor, parts_.enforcer.acts(), parts_.log),
                Joins({parts_.root, shared_.current, tasks_, shared_.releases})},
      coexistence_(parts_.root, shared_.current,
                   {parts_.settings.runtime_dir, parts_.settings.irqbalance_dir, parts_.enforcer.acts()},
                   parts_.log),
      units_({parts_.root, shared_.current, carrying_.executor, parts_.unit_properties, shared_.releases,
              parts_.log, parts_.enforcer.acts(), [this] { work_.want(Work::Urgency::soon); },
              [this](const auto& unit, const auto& policy, const auto& result) {
                  shared_.answers.unit_answered(unit, policy, result);
              }}),
      followers_({shared_.current, units_, steering_, parts_.enforcer, parts_.log,
                  [this](const auto& process) {
                      // A pass tells it which interrupts are under policy.
                      if (coexistence_.concerns(process) && queues_.guards_interrupts())
                          work_.want(Work::Urgency::soon);
                  },
                  [this](const auto& process) {
                      shared_.current->saw(process.policy);
                      if (shared_.current->awaits_claim(process.policy)) work_.want(Work::Urgency::soon);
                  },
                  [this] {
                      if (shared_.current->needs_nic_usage()) work_.want(Work::Urgency::soon);
                  },
                  [this] { work_.want(Work::Urgency::later); }, [this] { work_.want(Work::Urgency::now); }}),
      tasks_({parts_.root, shared_.current, carrying_.executor, parts_.log, shared_.releases, followers_},
             ThreadPlacer(shared_.current, carrying_.executor, carrying_.changes, carrying_.undo,
                          carrying_.joins, shared_.releases, shared_.answers.placed(), parts_.log,
                          former_slots(parts_)),
             Reaper(parts_.enforcer, carrying_.executor, parts_.log)),
      bookkeeping_(parts_.root, shared_.current, tasks_.table(),
                   parts_.settings.dry_run ? "" : parts_.settings.state_dir, parts_.log),
      queues_({shared_.current, parts_.enforcer, carrying_.executor, shared_.releases, carrying_.undo,
               shared_.answers.placed(), parts_.log}),
      steering_({parts_.root, shared_.current, tasks_.table(), tasks_.placer().assignments(),
                 shared_.releases, parts_.log, parts_.enforcer.acts() && !parts_.settings.dry_run,
                 [this](int pid) { tasks_.process_changed(pid); },
                 [this](const auto& found) { bookkeeping_.local_reads().note(found); },
                 [this] { work_.want(Work::Urgency::now); }, [this] { work_.want(Work::Urgency::soon); }}),
      balancer_({parts_.root,
                 shared_.current,
                 tasks_.table(),
                 tasks_.placer().assignments(),
                 parts_.settings.redeal_interval,
                 {[this] { work_.want(Work::Urgency::soon); },
                  [this](const TaskId& task) {
                      return steering_.is_settled(task) || carrying_.joins.serves(task);
                  }},
                 parts_.log}) {}

/// A claim holds while a program of the policy runs. After a restart, before the first pass has seen any, it
/// holds if there is something to be put back.
bool Daemon::claims_nothing(std::string_view policy) {
    if (shared_.releases.policy(policy)) return true;
    const auto* resolved = shared_.current.placements().find(policy);
    return resolved != nullptr && resolved->policy->exclusive == policy::Exclusive::yes &&
           resolved->policy->model != policy::Model::irq &&
           (work_.passes() > 1 || carrying_.executor.journal().size() == 0) &&
           is_idle(*shared_.current.world, tasks_.table(), policy);
}

void Daemon::use(std::shared_ptr<World> world, ReloadReason reason) {
    const auto before = std::exchange(shared_.current.world, std::move(world));
    if (before) {
        shared_.current->take_over(*before);
        tasks_.use_policies_of(*before);
    }
    if (reason == ReloadReason::asked) shared_.releases.clear_processes();
    shared_.releases.keep_policies(
        those_that_stay(shared_.loading, before.get(), *shared_.current.world, reason));
    shared_.current->use_releases([this](std::string_view policy) { return claims_nothing(policy); });
    if (auto* listeners = tasks_.sources().listeners()) listeners->want(shared_.current->matcher().ports());
    shared_.loaded_at = std::chrono::system_clock::now();
    shared_.answers.policies_changed(shared_.current->policies());
    for (const auto& problem : shared_.current.placements().problems)
        parts_.log.warn(fmt::format("policy {}: {}: {}", problem.policy, problem.subject, problem.message));
}

Result<void> Daemon::start() {
    for (const auto& fault : carrying_.executor.journal().faults())
        parts_.log.error("the undo journal: " + fault.to_string());
    carrying_.undo.note_dead();
    auto machine = machine::read_machine(parts_.root);
    if (!machine) return std::unexpected(std::move(machine.error()));
    const auto loader = shared_.loading.begin(std::move(*machine), {});
    while (!loader->step([] { return false; })) {
    }
    auto loaded = shared_.loading.end(*loader);
    if (!loaded) return std::unexpected(std::move(loaded.error()));
    if (const auto& warnings = shared_.loading.warnings(); !warnings.empty())
        parts_.log.report("policies:\n" + warnings);
    use(std::move(*loaded), ReloadReason::asked);
    const auto& world = *shared_.current.world;
    const auto& online = world.machine().topology.online;
    parts_.log.info(fmt::format("{}, {} online ({}), {}, {} in the undo journal",
                                counted(world.policies().policies.size(), "policy", "policies"),
                                counted(online.count(), "CPU"), online.to_list(),
                                counted(world.machine().nics.size(), "interface"),
                                counted(carrying_.executor.journal().size(), "subject")));
    return {};
}

std::unique_ptr<Job> Daemon::make_pass() {
    auto pass = std::make_unique<Sequence>();
    const bool queues_first = shared_.machine_changed && work_.passes() > 0;
    pass->until([this](const OutOfTime& out_of_time) { return shared_.loading.keep(out_of_time); });
    pass->until(reread_machine(parts_.root, shared_.current, shared_.machine_changed, parts_.log));

    pass->then([this] {
        shared_.current->releases_changed();
        shared_.current->use_steering(steering_.can_steer());
    });
    pass->until(learn_latencies(shared_.latencies, shared_.current, parts_.settings.state_dir));
    if (queues_first) pass->then_do([this] { return std::make_unique<QueueRound>(queues_); });
    pass->then([this] {
        carrying_.changes.begin_pass();
        carrying_.undo.begin_pass();
        log_silent(tasks_.sources().command_lines(), parts_.log);
        tasks_.begin_pass();
        bookkeeping_.begin_pass();
        coexistence_.begin_pass();
    });
    pass->until(await_listeners(tasks_.sources()));
    pass->then_do([this] {
        return std::make_unique<TaskRound>(
            parts_.root, tasks_,
            TaskRound::Listeners{[this](const auto& process) { coexistence_.see(process); },
                                 [this](const auto& process) { bookkeeping_.see(process); }},
            parts_.log);
    });
    pass->until([this](const auto& out_of_time) { return tasks_.end_pass(out_of_time); });
    pass->until([this](const auto& out_of_time) { return carrying_.joins.tidy(out_of_time); });
    pass->then([this] { carrying_.undo.end_tasks(); });
    // Lanes are given out anew: tasks move with them in the next pass.
    pass->until(learn_nic_usage(bookkeeping_, steering_, [this] { work_.want(Work::Urgency::soon); }));
    pass->until([this](const OutOfTime& out_of_time) { return balancer_.step(out_of_time); });
    pass->then([this] { coexistence_.end_pass(); });
    pass->then_do([this] { return std::make_unique<QueueRound>(queues_); });
    pass->then([this] {
        carrying_.undo.end_pass();
        followers_.memory().take_moved();
        units_.begin_pass();
        bookkeeping_.begin_costs();
    });
    pass->until([this](const auto& out_of_time) { return bookkeeping_.local_reads().step(out_of_time); });
    pass->then([this] { steering_.end_pass(); });
    pass->until([this](const OutOfTime& out_of_time) { return units_.step(out_of_time); });
    pass->until([this](const OutOfTime& out_of_time) { return bookkeeping_.step_costs(out_of_time); });
    pass->until(look_after_journal(carrying_.executor.journal(), parts_.log));
    pass->then([this] {
        tasks_.placer().keep_slots();
        carrying_.changes.end_pass();
        parts_.log.tell_held_back();
        shared_.problems.end_pass();
    });
    return pass;
}

void Daemon::begin_pass(bool machine_changed) {
    if (!shared_.current.world || shared_.is_stopping) return;
    shared_.machine_changed |= machine_changed;
    // A running pass always ends, whoever asks for the next.
    if (work_.passing()) return work_.want(Work::Urgency::soon);
    tasks_.events().begin_pass();
    work_.begin_pass(shared_.answers.watch(make_pass()));
}

/// True if a policy wants something of the interface, which may have got this name just now. Containers'
/// interfaces come and go all the time, and say nothing of its interrupts.
bool Daemon::has_targets(const std::string& nic) const {
    const auto index = parts_.root.sys().number("class/net/" + nic + "/ifindex");
    const auto& machine = shared_.current->machine();
    return std::ranges::any_of(shared_.current.placements().queues, [&](const planner::QueueTarget& target) {
        const auto* known = machine.nic(target.nic);
        return target.nic == nic || (known != nullptr && index && known->ifindex == *index);
    });
}

void Daemon::link_changed(const std::string& nic) {
    if (shared_.is_stopping) return;
    if (nic.empty() || has_targets(nic)) carrying_.changes.expect_of_queues();
    // The pass that follows reads the whole machine: interfaces above this one may have changed with it. Many
    // at once (a host full of containers starts) are left to it altogether.
    shared_.machine_changed = true;
    if (!nic.empty() && !work_.is_urgent_full()) {
        auto work = std::make_unique<Sequence>();
        work->until(reread_nic(parts_.root, shared_.current, nic, parts_.log));
        work->then_do([this, nic] { return std::make_unique<QueueRound>(queues_, nic); });
        work_.add_urgent(std::move(work));
    }
    work_.want(Work::Urgency::soon);
}

void Daemon::events_lost() {
    ++shared_.events_lost;
    tasks_.events_lost();
    parts_.log.warn("the kernel's process events overflowed: everything is looked at again");
    begin_pass(false);
}

bool Daemon::step(const OutOfTime& out_of_time) {
    // A process that calls for attention all the time keeps no pass and no answer from its end.
    shared_.events_are_next = !shared_.events_are_next;
    const auto step_events = [&] { return steering_.step(out_of_time) && tasks_.step(out_of_time); };
    const bool is_done = shared_.events_are_next ? step_events() && work_.step(out_of_time)
                                                 : work_.step(out_of_time) && step_events();
    return is_done && !steering_.has_news(); // a task that was placed is news
}

void Daemon::end_duties(const char* why) {
    shared_.is_stopping = true;
    shared_.answers.give_up(why);
    carrying_.changes.stop();
    tasks_.begin_stop();
    carrying_.undo.begin_stop();
    carrying_.joins.begin_stop();
}

std::unique_ptr<Sequence> Daemon::begin_last_costs() {
    auto sequence = std::make_unique<Sequence>();
    sequence->then([this] {
        bookkeeping_.begin_costs(true);
        tasks_.placer().keep_slots();
    });
    return sequence;
}

void Daemon::begin_handover(std::function<void()> done) {
    end_duties("the daemon is being restarted");
    parts_.log.info("being restarted: all stays in place for the next daemon");
    if (!parts_.enforcer.acts() || !shared_.current.world) return done();
    auto end = begin_last_costs();
    end->until([this](const OutOfTime& out_of_time) { return bookkeeping_.step_costs(out_of_time); });
    end->then(std::move(done));
    work_.begin_end(std::move(end));
}

void Daemon::begin_stop(std::function<void()> done) {
    end_duties("the daemon is stopping: what it changed is put back");
    if (!parts_.enforcer.acts() || !shared_.current.world) return done();
    auto stop = begin_last_costs();
    stop->then([this] {
        coexistence_.stop();
        units_.begin_stop();
    });
    // CPUs may have gone a moment ago, and the kernel may have widened masks for that.
    const auto online = topology::read_online(parts_.root).value_or(shared_.current.placements().online);
    stop->then_do([this, online] {
        const auto choose = [this](const state::Entry& entry) {
            return shared_.current->keeps_on_stop(entry.record->policy) ? Restorer::Choice::keep
                                                                        : Restorer::Choice::restore;
        };
        return std::make_unique<Restorer>(Restorer::Parts{carrying_.executor, tasks_.sources(), parts_.log},
                                          online, choose, [this](const status::Changes& changes) {
                                              const auto count = to_string(changes.put_back());
                                              parts_.log.info(count.empty() ? "nothing had to be put back"
                                                                            : count + " put back as before");
                                          });
    });
    stop->then_do([this, online] {
        return std::make_unique<OrphanRestorer>(
            OrphanRestorer::Parts{parts_.root, carrying_.executor, carrying_.undo, parts_.log}, online,
            [this](const std::string& policy) { return shared_.current->keeps_on_stop(policy); });
    });
    // Last, as it may wait: it looks at processes, and writes to a disk.
    stop->until([this](const OutOfTime& out_of_time) { return bookkeeping_.step_costs(out_of_time); });
    stop->then(std::move(done));
    work_.begin_end(std::move(stop));
}

namespace {

/// Of a reload of which nothing counts; the error may have a line for each file.
std::string refusal_of(const Error& error) {
    const auto why = error.to_string();
    const auto trimmed = trim_text(why);
    const bool is_one_line = trimmed.find('\n') == std::string_view::npos;
    return fmt::format("reload failed: {}{}the running set stays", trimmed, is_one_line ? "; " : "\n");
}

} // namespace

void Daemon::status(OwnedAnswer answer) {
    if (shared_.is_stopping) return answer(fail("the daemon is stopping"));
    const auto tasks = std::make_shared<TaskStatus>(
        TaskStatus::Parts{parts_.root, shared_.current, carrying_.executor, followers_.memory(),
                          carrying_.joins, parts_.enforcer.acts()});
    const auto complete = [this, tasks](status::AnswerText text) {
        status::Overview overview;
        overview.instance = {::getpid(),
                             !parts_.enforcer.acts(),
                             shared_.started_at,
                             shared_.loaded_at,
                             parts_.settings.policy_folders,
                             shared_.current->machine().topology.online,
                             parts_.settings.reconcile_interval};
        overview.counters = {.journal = carrying_.executor.journal().size(),
                             .passes = work_.passes(),
                             .passing = work_.passing(),
                             .last_pass = shared_.problems.last_pass(),
                             .by_event = tasks_.events().handled(),
                             .events_lost = shared_.events_lost};
        add_outcomes(carrying_.executor, overview.counters);
        overview.policies = policy_status(*shared_.current.world, tasks->holdings(), carrying_.executor,
                                          shared_.releases, steering_);
        auto states = steering_.tasks().states();
        for (std::size_t i = 0; i < overview.policies.size(); ++i) {
            auto& policy = overview.policies[i];
            if (policy.note.empty() && work_.passes() > 1)
                policy.note =
                    match_note(*shared_.current.world, tasks_.table(), carrying_.executor.journal(), i);
            policy.packets.local = bookkeeping_.local_reads().of_policy(policy.name);
            policy.packets.tasks = std::move(states[policy.name]);
        }
        overview.load = shared_.loading.status();
        overview.problems = shared_.problems.list();
        overview.crowding = balancer_.crowding();
        overview.units = units_.status();
        add_coexistence(coexistence_, overview);
        overview.floods = tasks_.events().floods(EventQueue::Clock::now());
        for (auto& flood : overview.floods)
            flood.user = tasks_.sources().user(flood.uid);
        return status::finish(std::move(text), overview, status::to_text(bookkeeping_.costs()),
                              status::to_text(bookkeeping_.measurement()));
    };
    work_.add(std::make_unique<StatusJob>(
        StatusJob::Parts{shared_.current, tasks_.table(),
                         [tasks](const KnownProcess& process) { return tasks->process(process); },
                         [tasks](const KnownThread& thread, int pid) { return tasks->thread(thread, pid); },
                         [this](const planner::QueueTarget& target) { return queues_.status_now(target); },
                         complete},
        std::move(answer)));
}

void Daemon::plan(OwnedAnswer answer) {
    if (shared_.is_stopping) return answer(fail("the daemon is stopping"));
    work_.add(std::make_unique<PlanJob>(PlanJob::Parts{parts_.root, shared_.current, tasks_, queues_},
                                        std::move(answer)));
}

void Daemon::explain(const std::string& subject, OwnedAnswer answer) {
    if (shared_.is_stopping) return answer(fail("the daemon is stopping"));
    std::vector<status::QueueStatus> found;
    const auto* nic = shared_.current->machine().nic(subject);
    for (const auto& target : shared_.current.placements().queues) {
        const auto* irq = std::get_if<planner::IrqMask>(&target.subject);
        const bool is_irq =
            irq != nullptr && (subject == "irq:" + std::to_string(irq->irq) || subject == irq->label);
        if ((nic != nullptr && target.nic == nic->name) || is_irq) found.push_back(queues_.status(target));
    }
    if (!found.empty() || nic != nullptr) return answer(status::answer(subject, found));
    if (auto note = interrupt_note(parts_.root, *shared_.current.world, subject)) {
        if (!*note) return answer(std::unexpected(std::move(note->error())));
        return answer(status::answer(subject, found, **note));
    }
    const auto tid = parse_number<int>(subject);
    if (!tid) return answer(fail("neither a PID, nor an interface, nor irq:NUMBER", subject));
    const auto pid = inventory::read_process_id(parts_.root, *tid);
    if (!pid) return answer(fail("there is no such process or thread", subject));
    work_.add(std::make_unique<ExplainJob>(ExplainJob::Parts{parts_.root, shared_.current, tasks_,
                                                             carrying_.executor.journal(), shared_.releases,
                                                             [this](const TaskId& process, auto& into) {
                                                                 units_.explain(process, into);
                                                                 steering_.explain(process, into);
                                                                 bookkeeping_.local_reads().explain(process,
                                                                                                    into);
                                                             }},
                                           *pid, std::move(answer)));
}

Result<std::string> Daemon::history(const std::string& kind) {
    // To find that there is nothing of a kind takes a look at everything, if it is none that is kept.
    if (!kind.empty() && std::ranges::count(state::measurement_kinds, kind) == 0)
        return fail("no such kind of measurement", kind);
    return status::to_text(bookkeeping_.history(kind));
}

void Daemon::reload(Answer answer, Until until, ReloadReason reason) {
    if (shared_.is_stopping) return answer(fail("the daemon is stopping"));
    // The machine is read again by the pass that follows.
    auto loader = shared_.loading.begin(shared_.current->machine(), shared_.current->usage());
    auto reload = std::make_unique<Sequence>();
    reload->until([loader](const OutOfTime& out_of_time) { return loader->step(out_of_time); });
    reload->then([this, loader, until, reason, shared_answer = std::make_shared<Answer>(std::move(answer))] {
        auto& loading = shared_.loading;
        auto settings_faults = reread(parts_.reread_settings, parts_.settings);
        balancer_.use_interval(parts_.settings.redeal_interval);
        auto world = loading.end(*loader, std::move(settings_faults));
        if (!world) {
            parts_.log.alarm(reload_refused_message,
                             "reload: " + world.error().to_string() + "\nthe running policies stay");
            return (*shared_answer)(fail(refusal_of(world.error())));
        }
        use(std::move(*world), reason);
        const auto loaded =
            "reloaded: " + counted(shared_.current->policies().policies.size(), "policy", "policies");
        parts_.log.info(loaded);
        auto fault = loading.report();
        if (!fault.empty()) fault = loading.warnings() + fault;
        if (until == Until::done)
            shared_.answers.add({std::move(*shared_answer), loading.warnings() + loaded, fault});
        begin_pass(true);
        if (until == Until::done) return;
        if (!fault.empty()) return (*shared_answer)(fail(std::move(fault)));
        (*shared_answer)(status::message_text(loading.warnings() + loaded));
    });
    work_.add(std::move(reload));
}

void Daemon::apply(Answer answer, Until until) {
    if (shared_.is_stopping) return answer(fail("the daemon is stopping"));
    shared_.releases.clear();
    shared_.current->releases_changed();
    carrying_.executor.begin_anew();
    if (until == Until::done) {
        shared_.answers.add({std::move(answer)});
        return begin_pass(true);
    }
    begin_pass(true);
    answer(status::message_text("a pass has begun"));
}

Result<std::string> Daemon::measured(const measure::Run& run) {
    bookkeeping_.measured(run);
    const auto report = bookkeeping_.measurement();
    return report ? status::to_answer(*report) : fail("the measurement is not known any more");
}

void Daemon::release(const std::string& what, Answer answer, Until until) {
    if (shared_.is_stopping) return answer(fail("the daemon is stopping"));
    const auto pid = parse_number<int>(what);
    const auto* process = pid ? tasks_.table().find(*pid) : nullptr;
    const bool is_policy = shared_.current.placements().find(what) != nullptr;
    if (!what.empty() && !is_policy && process == nullptr)
        return answer(fail("neither a policy nor a process under policy", what));
    if (what.empty())
        shared_.releases.release_all();
    else if (is_policy)
        shared_.releases.release_policy(what);
    else
        shared_.releases.release_process(process->id);
    shared_.current->releases_changed();
    parts_.log.info(fmt::format("released by hand: {}{}",
                                what.empty() ? "everything"
                                : is_policy  ? "policy "
                                             : "process ",
                                what));
    const auto choose = [what, is_policy, pid](const state::Entry& entry) {
        const auto* task = std::get_if<planner::TaskMask>(&entry.subject);
        const bool is_its = task != nullptr && task->pid == pid;
        const bool is_meant = what.empty() || (is_policy ? entry.record->policy == what : is_its);
        return is_meant ? Restorer::Choice::restore : Restorer::Choice::skip;
    };
    auto shared_answer = std::make_shared<Answer>(std::move(answer));
    if (until == Until::begun) (*shared_answer)(status::message_text("the release has begun"));
    work_.add(std::make_unique<Restorer>(
        Restorer::Parts{carrying_.executor, tasks_.sources(), parts_.log},
        shared_.current.placements().online, choose,
        [this, shared_answer, until](status::Changes changes) {
            begin_pass(false);
            changes.if_none = "there was nothing to put back";
            if (until == Until::done) (*shared_answer)(status::to_text(changes));
        },
        true));
}

} // namespace affinityd::app
