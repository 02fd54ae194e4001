// SPDX-License-Identifier: Apache-2.0
#include "core/daemon.hpp"

#include "base/text.hpp"
#include "machine/reader.hpp"
#include "status/changes.hpp"

#include <algorithm>
#include <future>
#include <iterator>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace affinityd::core {

namespace {

/// Policies that stay released: a reload that was asked for takes them up again, or one that is saved, but
/// not a version that had to stay of a file with errors, nor a change of another policy, nor the file that
/// counts again after a trial.
Names those_that_stay(const Loading& loading, const World* before, const World& now, ReloadReason reason) {
    auto names = loading.faulty();
    if (reason == ReloadReason::asked || before == nullptr) return names;
    for (const auto& policy : now.policies().policies) {
        const auto* resolved = before->placements().find(policy.name);
        const bool is_file_same = resolved != nullptr && (resolved->policy->at.file == policy.at.file ||
                                                          !loading.was_listed(resolved->policy->at.file));
        const bool is_same = is_file_same && loading.is_as_before(policy.at.file);
        if (is_same || reason == ReloadReason::overlay) names.insert(policy.name);
    }
    return names;
}

/// A reload of which nothing counts; the error may have a line for each file.
std::string refusal_of(const Error& error) {
    const auto why = error.to_string();
    const auto trimmed = trim_text(why);
    const bool is_one_line = trimmed.find('\n') == std::string_view::npos;
    return fmt::format("reload failed: {}{}the running set stays", trimmed, is_one_line ? "; " : "\n");
}

} // namespace

Daemon::Daemon(Shared& shared, ReadSettings reread_settings)
    : shared_(shared), reread_settings_(std::move(reread_settings)),
      loading_(shared_.root, shared_.settings, shared_.acts()), answers_(shared_), undo_(shared_),
      tasks_(shared_, ThreadPlacer(shared_, undo_, answers_.placed())),
      queues_(shared_, undo_, answers_.placed()) {
    log_notices(shared_.log, shared_.history.take_notices());
}

Joining* Daemon::joining() {
    for (const auto& behaviour : shared_.behaviours)
        if (auto* found = behaviour->joining()) return found;
    return nullptr;
}

/// A claim holds while a program of the policy runs. After a restart, before the first pass has seen any, it
/// holds if there is something to be put back.
planner::Released Daemon::without_claims() {
    const auto& policies = shared_.current->policies().policies;
    std::vector<bool> runs(policies.size(), work().passes() <= 1 && shared_.journal().size() > 0);
    for (const auto& [pid, process] : tasks_.table().processes())
        runs[process.policy] = true;
    planner::Released released;
    for (std::size_t i = 0; i < policies.size(); ++i) {
        const auto& policy = policies[i];
        const bool is_idle =
            !runs[i] && policy.exclusive == policy::Exclusive::yes && policy.model != policy::Model::irq;
        if (policy.exclusive != policy::Exclusive::no && (is_idle || shared_.releases.policy(policy.name)))
            released.insert(policy.name);
    }
    return released;
}

void Daemon::update_claims() { shared_.current->update(without_claims()); }

void Daemon::use(std::shared_ptr<World> world, ReloadReason reason) {
    const auto before = std::exchange(shared_.current.world, std::move(world));
    if (before) tasks_.use_policies_of(*before);
    if (reason == ReloadReason::asked) shared_.releases.clear_processes();
    shared_.releases.keep_policies(those_that_stay(loading_, before.get(), *shared_.current.world, reason));
    World::Choices choices;
    for (const auto& behaviour : shared_.behaviours)
        choices.merge(behaviour->choices(*shared_.current.world));
    if (before) {
        shared_.current->take_over(*before, choices, without_claims());
    } else {
        shared_.current->use_choices(choices);
        update_claims();
    }
    if (auto* listeners = tasks_.sources().listeners()) listeners->want(shared_.current->matcher().ports());
    loaded_at_ = std::chrono::system_clock::now();
    answers_.policies_changed(shared_.current->policies());
    for (const auto& problem : shared_.current.placements().problems)
        shared_.log.warn(fmt::format("policy {}: {}: {}", problem.policy, problem.subject, problem.message));
}

void Daemon::link_changed(const std::string& nic) {
    if (is_stopping_) return;
    if (nic.empty() || queues_.concerns(nic)) shared_.executor.expect_changes(false);
    // The pass reads the whole machine: interfaces above it may have changed. Many at once are left to that.
    machine_changed_ = true;
    if (!nic.empty() && !work().is_urgent_full()) work().add_urgent(queues_.reread(nic));
    shared_.want_pass();
}

std::vector<Overlay> Daemon::overlays() const {
    std::vector<Overlay> all;
    for (const auto& behaviour : shared_.behaviours)
        std::ranges::move(behaviour->overlays(), std::back_inserter(all));
    return all;
}

/// Settings are read again with a reload.
Result<std::shared_ptr<World>> Daemon::end_loading(Loaded loaded) {
    auto faults =
        shared_.current.world ? reread(reread_settings_, shared_.settings) : std::vector<status::FileFault>();
    auto world = loading_.end(std::move(loaded), std::move(faults));
    if (!world) return world;
    if (const auto text = loading_.report(); !text.empty())
        shared_.log.error(text, Log::Kind::always(), {.message_id = faulty_files_message});
    if (!loading_.unkept().empty())
        shared_.log.warn("policies are not kept for a start with errors in their files: " +
                         loading_.unkept());
    return world;
}

Result<void> Daemon::start() {
    for (const auto& fault : shared_.journal().faults())
        shared_.log.error("the undo journal: " + fault.to_string());
    auto machine = machine::read_machine(shared_.root);
    if (!machine) return std::unexpected(std::move(machine.error()));
    auto world = end_loading(loading_.begin(std::move(*machine), {}, overlays()).get());
    if (!world) return std::unexpected(std::move(world.error()));
    if (const auto& warnings = loading_.warnings(); !warnings.empty())
        shared_.log.warn("policies:\n" + warnings, Log::Kind::always());
    use(std::move(*world), ReloadReason::asked);
    const auto& online = shared_.current->machine().topology.online;
    shared_.log.info(fmt::format("{}, {} online ({}), {}, {} in the undo journal",
                                 counted(shared_.current->policies().policies.size(), "policy", "policies"),
                                 counted(online.count(), "CPU"), online.to_list(),
                                 counted(shared_.current->machine().nics.size(), "interface"),
                                 counted(shared_.journal().size(), "subject")));
    return {};
}

bool Daemon::step(const OutOfTime& out_of_time) {
    // A process that calls for attention all the time keeps no pass and no answer from its end.
    events_are_next_ = !events_are_next_;
    return events_are_next_ ? tasks_.step(out_of_time) && work().step(out_of_time)
                            : work().step(out_of_time) && tasks_.step(out_of_time);
}

void Daemon::events_lost() {
    ++events_lost_;
    tasks_.events_lost();
    shared_.log.warn("the kernel's process events overflowed: everything is looked at again");
    // A user can make them overflow again and again: passes must not follow each other without a pause.
    constexpr std::chrono::seconds distance{2};
    const auto now = std::chrono::steady_clock::now();
    if (now - std::exchange(events_lost_at_, now) < distance) return work().want(Work::Urgency::later);
    begin_pass(false);
}

Result<std::string> Daemon::measured(const measure::Run& run) {
    shared_.history.add(run, shared_.current->policies());
    log_notices(shared_.log, shared_.history.take_notices());
    const auto report = shared_.history.report();
    return report ? status::to_answer(*report) : fail("the measurement is not known any more");
}

void Daemon::reload(Answer answer, Until until, ReloadReason reason) {
    if (is_stopping_) return answer(fail("the daemon is stopping"));
    work().add(read_policies(std::move(answer), until, reason));
}

void Daemon::run(Order order) {
    if (is_stopping_) return order.answer(fail("the daemon is stopping"));
    for (const auto& behaviour : shared_.behaviours)
        if (behaviour->run(order)) return;
    order.answer(fail("this daemon was built without that", order.verb));
}

/// The machine is read again by the pass that follows.
Slices Daemon::read_policies(Answer answer, Until until, ReloadReason reason, std::string headline) {
    constexpr std::chrono::microseconds patience{100};
    auto loaded = loading_.begin(shared_.current->machine(), shared_.current->usage(), overlays());
    while (loaded.wait_for(patience) == std::future_status::timeout)
        co_yield pause;
    use_reloaded(loaded.get(), std::move(answer), until, reason, std::move(headline));
}

void Daemon::use_reloaded(Loaded loaded, Answer answer, Until until, ReloadReason reason,
                          std::string headline) {
    auto world = end_loading(std::move(loaded));
    if (!world) {
        shared_.log.error("reload: " + world.error().to_string() + "\nthe running policies stay",
                          Log::Kind::always(), {.message_id = reload_refused_message});
        return answer(fail(refusal_of(world.error())));
    }
    use(std::move(*world), reason);
    const bool is_reload = headline.empty();
    shared_.executor.begin_anew();
    if (is_reload) {
        headline = "reloaded: " + counted(shared_.current->policies().policies.size(), "policy", "policies");
        shared_.log.info(headline);
    }
    auto fault = is_reload ? loading_.report() : std::string();
    if (!fault.empty()) fault = loading_.warnings() + fault;
    if (until == Until::done) {
        answers_.add({std::move(answer), loading_.warnings() + headline, fault});
        return begin_pass(true);
    }
    begin_pass(true);
    if (!fault.empty()) return answer(fail(std::move(fault)));
    answer(status::message_text(loading_.warnings() + headline));
}

void Daemon::apply(Answer answer, Until until) {
    if (is_stopping_) return answer(fail("the daemon is stopping"));
    shared_.releases.clear();
    update_claims();
    shared_.executor.begin_anew();
    if (until == Until::done) {
        answers_.add({std::move(answer)});
        return begin_pass(true);
    }
    begin_pass(true);
    answer(status::message_text("a pass has begun"));
}

void Daemon::release(const std::string& what, uid_t user, Answer answer, Until until) {
    if (is_stopping_) return answer(fail("the daemon is stopping"));
    const auto pid = parse_number<int>(what);
    const auto* process = pid ? tasks_.table().find(*pid) : nullptr;
    const bool is_policy = shared_.current.placements().find(what) != nullptr;
    if (!what.empty() && !is_policy && process == nullptr)
        return answer(fail("neither a policy nor a process under policy", what));
    for (const auto& policy : shared_.current->policies().policies)
        if (what.empty() || policy.name == what) shared_.releases.release_policy(policy.name);
    if (process != nullptr && !is_policy) shared_.releases.release_process(process->id);
    for (const auto& behaviour : shared_.behaviours)
        behaviour->released(what, user);
    update_claims();
    const LogFields fields{
        .policy = is_policy ? what : "", .tid = is_policy ? 0 : pid.value_or(0), .user = user};
    shared_.log.info(fmt::format("released by hand, by user {}: {}{}", user,
                                 what.empty() ? "everything"
                                 : is_policy  ? "policy "
                                              : "process ",
                                 what),
                     Log::Kind::always(), fields);
    if (until == Until::begun) {
        answer(status::message_text("the release has begun"));
        answer = {};
    }
    work().add(restore_released(what, is_policy ? std::nullopt : pid, std::move(answer)));
}

/// Restores what a policy, or a process by its `pid`, or everything ("") was given: the records of what was
/// kept are in force again, and a pass restores all that is released. `answer` may be empty.
Slices Daemon::restore_released(std::string what, std::optional<int> pid, Answer answer) {
    for (state::Journal::Cursor cursor; const auto* past = shared_.journal().next_past(cursor);) {
        const auto* task = std::get_if<planner::TaskMask>(&past->first);
        const auto& undo = past->second.terms->undo;
        const bool is_meant =
            what.empty() || (pid ? task != nullptr && task->pid == *pid : undo.policy == what);
        const bool is_kept = is_meant && past->second.standing == state::Standing::kept;
        if (is_kept && what.empty()) shared_.releases.release_policy(undo.policy); // it may have been removed
        if (is_kept) shared_.report(shared_.journal().put(machine::Subject(past->first), undo));
        co_yield pause;
    }
    if (answer) answers_.add({.answer = std::move(answer), .is_of_release = true});
    begin_pass(false);
}

} // namespace affinityd::core
