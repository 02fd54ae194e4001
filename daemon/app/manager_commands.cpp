// SPDX-License-Identifier: Apache-2.0
// The manager's answers to commands.
#include "app/claim_notes.hpp"
#include "app/explain_job.hpp"
#include "app/interrupt_note.hpp"
#include "app/listener_looks.hpp"
#include "app/manager.hpp"
#include "app/message_ids.hpp"
#include "app/nic_notes.hpp"
#include "app/overview.hpp"
#include "app/plan_job.hpp"
#include "app/restorer.hpp"
#include "app/silent_processes.hpp"
#include "app/status_job.hpp"
#include "base/text.hpp"
#include "inventory/lookup.hpp"
#include "status/report_text.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

namespace affinityd::app {

void Manager::status(OwnedAnswer answer) {
    if (shared_.is_stopping) return answer(fail("the daemon is stopping"));
    struct Drift {
        std::string policy; ///< of the process that is told of
        std::map<std::string, std::size_t> threads;
    };
    const auto drift = std::make_shared<Drift>();
    const auto complete = [this, drift](status::AnswerText text) {
        status::Overview overview;
        overview.instance = {::getpid(), !parts_.enforcer.acts(), shared_.loaded_at,
                             parts_.settings.policy_folders, shared_.current->machine().topology.online};
        overview.counters = {.journal = parts_.journal.size(),
                             .passes = work_.passes(),
                             .passing = work_.passing(),
                             .by_event = tasks_.events().handled(),
                             .events_lost = shared_.events_lost};
        add_outcomes(carrying_.executor, overview.counters);
        overview.policies = policy_status(*shared_.current.world, tasks_.table(), shared_.releases);
        add_drift(carrying_.executor, drift->threads, overview.policies);
        overview.load = shared_.loading.status();
        shared_.loading.add_problems(overview.problems);
        const auto add = [&](std::vector<planner::Problem> problems) {
            std::ranges::move(problems, std::back_inserter(overview.problems));
        };
        add(shared_.current.placements().problems);
        add(nic_problems(*shared_.current.world, tasks_.table()));
        if (work_.passes() > (work_.passing() ? 1U : 0U)) // before, not all processes have been seen
            add(idle_claims(*shared_.current.world, tasks_.table()));
        for (const auto& fault : parts_.journal.faults())
            overview.problems.push_back({{}, fault.subject, "the undo journal: " + fault.message});
        add(silence_problems(tasks_.sources().command_lines()));
        add(listener_problems(tasks_.sources().listeners()));
        add(lack_problems(carrying_.executor, tasks_.events()));
        overview.goodness = balancer_.goodness();
        units_.add_status(overview);
        add_coexistence(coexistence_, overview);
        overview.floods = tasks_.events().floods().list(Floods::Clock::now());
        for (auto& flood : overview.floods)
            flood.user = tasks_.sources().user(flood.uid);
        return status::finish(std::move(text), overview, status::to_text(bookkeeping_.costs()),
                              status::to_text(bookkeeping_.measurement()));
    };
    work_.add(std::make_unique<StatusJob>(
        StatusJob::Parts{
            shared_.current, tasks_.table(),
            [this, drift](const KnownProcess& process) {
                drift->policy = shared_.current->policy(process.policy).name;
                return process_status(*shared_.current.world, process, memory_);
            },
            [this, drift](const KnownThread& thread, int pid) {
                auto value = thread_status(thread, pid, carrying_.executor);
                // A dry run shows what it would have done.
                if (parts_.enforcer.acts())
                    read_again(parts_.root, pid, thread, shared_.current.placements().online, value);
                if (value.has_drifted) ++drift->threads[drift->policy];
                return value;
            },
            [this](const planner::QueueTarget& target) { return queues_.status_now(target); }, complete},
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
    for (const auto& target : shared_.current.placements().queues) {
        const auto* irq = std::get_if<planner::IrqMask>(&target.subject);
        const bool is_irq =
            irq != nullptr && (subject == "irq:" + std::to_string(irq->irq) || subject == irq->label);
        if (target.nic == subject || is_irq) found.push_back(queues_.status(target));
    }
    if (!found.empty() || shared_.current->machine().nic(subject) != nullptr)
        return answer(status::answer(subject, found));
    if (auto note = interrupt_note(parts_.root, *shared_.current.world, subject)) {
        if (!*note) return answer(std::unexpected(std::move(note->error())));
        return answer(status::answer(subject, found, **note));
    }
    const auto tid = parse_number<int>(subject);
    if (!tid) return answer(fail("neither a PID, nor an interface, nor irq:NUMBER", subject));
    const auto pid = inventory::read_process_id(parts_.root, *tid);
    if (!pid) return answer(fail("there is no such process or thread", subject));
    work_.add(std::make_unique<ExplainJob>(
        ExplainJob::Parts{parts_.root, shared_.current, tasks_, parts_.journal, shared_.releases,
                          [this](const TaskId& process, auto& into) { units_.explain(process, into); }},
        *pid, std::move(answer)));
}

Result<std::string> Manager::history(const std::string& kind) const {
    // To find that there is nothing of a kind takes a look at everything, if it is none that is kept.
    if (!kind.empty() && std::ranges::count(state::measurement_kinds, kind) == 0)
        return fail("no such kind of measurement", kind);
    return status::to_text(bookkeeping_.history(kind));
}

void Manager::reload(Answer answer) {
    if (shared_.is_stopping) return answer(fail("the daemon is stopping"));
    // The machine is read again by the pass that follows.
    auto loader = shared_.loading.begin(shared_.current->machine(), shared_.current->usage());
    auto reload = std::make_unique<Sequence>();
    reload->until([loader](const OutOfTime& out_of_time) { return loader->step(out_of_time); });
    reload->then([this, loader, shared_answer = std::make_shared<Answer>(std::move(answer))] {
        auto& loading = shared_.loading;
        auto settings_faults = reread(parts_.reread_settings, parts_.settings);
        balancer_.use_interval(parts_.settings.redeal_interval);
        auto world = loading.end(*loader, std::move(settings_faults));
        if (!world) {
            parts_.log.alarm(reload_refused_message,
                             "reload: " + world.error().to_string() + "\nthe running policies stay");
            return (*shared_answer)(std::unexpected(std::move(world.error())));
        }
        use(std::move(*world));
        const auto loaded = fmt::format("reloaded: {} policies", shared_.current->policies().policies.size());
        parts_.log.info(loaded);
        begin_pass(true);
        if (auto faults = loading.report(); !faults.empty())
            return (*shared_answer)(fail(loading.warnings() + faults));
        (*shared_answer)(loading.warnings() + loaded);
    });
    work_.add(std::move(reload));
}

void Manager::apply() {
    if (shared_.is_stopping) return;
    shared_.releases.clear();
    shared_.current->releases_changed();
    carrying_.executor.begin_anew();
    coexistence_.look_again();
    begin_pass(true);
}

void Manager::release(const std::string& what, Answer answer) {
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
    const auto choose = [what, is_policy, pid](const state::Entry& entry) {
        const auto* task = std::get_if<planner::TaskMask>(&entry.subject);
        const bool is_meant =
            what.empty() || (is_policy ? entry.record.policy == what : task != nullptr && task->pid == *pid);
        return is_meant ? Restorer::Choice::restore : Restorer::Choice::skip;
    };
    auto shared_answer = std::make_shared<Answer>(std::move(answer));
    work_.add(std::make_unique<Restorer>(
        Restorer::Parts{parts_.journal, carrying_.executor, tasks_.sources(), parts_.log},
        shared_.current.placements().online, choose,
        [this, shared_answer](std::size_t count) {
            begin_pass(false);
            (*shared_answer)(fmt::format("{} subjects put back", count));
        },
        true));
}

} // namespace affinityd::app
