// SPDX-License-Identifier: Apache-2.0
// The manager's answers to commands.
#include "app/claim_notes.hpp"
#include "app/explain_job.hpp"
#include "app/interrupt_note.hpp"
#include "app/manager.hpp"
#include "app/message_ids.hpp"
#include "app/overview.hpp"
#include "app/plan_job.hpp"
#include "app/restorer.hpp"
#include "app/status_job.hpp"
#include "base/counted.hpp"
#include "base/text.hpp"
#include "inventory/process_files.hpp"
#include "status/changes.hpp"
#include "status/report_text.hpp"

#include <algorithm>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

namespace affinityd::app {

namespace {

/// Of a reload of which nothing counts; the error may have a line for each file.
std::string refusal_of(const Error& error) {
    const auto why = error.to_string();
    const auto trimmed = trim_text(why);
    const bool is_one_line = trimmed.find('\n') == std::string_view::npos;
    return fmt::format("reload failed: {}{}the running set stays", trimmed, is_one_line ? "; " : "\n");
}

} // namespace

void Manager::status(OwnedAnswer answer) {
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

void Manager::plan(OwnedAnswer answer) {
    if (shared_.is_stopping) return answer(fail("the daemon is stopping"));
    work_.add(std::make_unique<PlanJob>(PlanJob::Parts{parts_.root, shared_.current, tasks_, queues_},
                                        std::move(answer)));
}

void Manager::explain(const std::string& subject, OwnedAnswer answer) {
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

Result<std::string> Manager::history(const std::string& kind) {
    // To find that there is nothing of a kind takes a look at everything, if it is none that is kept.
    if (!kind.empty() && std::ranges::count(state::measurement_kinds, kind) == 0)
        return fail("no such kind of measurement", kind);
    return status::to_text(bookkeeping_.history(kind));
}

void Manager::reload(Answer answer, Until until, ReloadReason reason) {
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

void Manager::apply(Answer answer, Until until) {
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

Result<std::string> Manager::measured(const measure::Run& run) {
    bookkeeping_.measured(run);
    const auto report = bookkeeping_.measurement();
    return report ? status::to_answer(*report) : fail("the measurement is not known any more");
}

void Manager::release(const std::string& what, Answer answer, Until until) {
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
