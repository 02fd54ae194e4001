// SPDX-License-Identifier: Apache-2.0
// The order of a pass and of the end, and the answers to those who wait for them.
#include "core/pass.hpp"

#include "core/daemon.hpp"
#include "machine/reader.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <ranges>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace affinityd::core {

namespace {

constexpr unsigned most_told_a_minute = 30;         ///< shown a minute
constexpr std::chrono::milliseconds list_wait{300}; ///< for the list of listeners

bool is_kept_off(const planner::Action& action) { return !action.reason.claimants.empty(); }

/// On whose behalf it is, or was.
std::string_view policy_of(const planner::Action& action) {
    if (is_kept_off(action)) return action.reason.claimants.front();
    return action.policy.empty() && action.record ? action.record->policy : action.policy;
}

std::string reason_of(const enforcer::Applied& applied) {
    if (applied.outcome == enforcer::Outcome::unrecorded)
        return "the undo journal cannot be written: " + std::generic_category().message(applied.code);
    if (applied.code == 0) return std::string(to_string(applied.outcome));
    return std::generic_category().message(applied.code);
}

} // namespace

/// Counts the work of its slices for those who wait for the pass.
class Daemon::Pass final : public Job {
  public:
    explicit Pass(Daemon& daemon) : placed_(daemon.answers_.placed()), pass_(daemon.pass()) {}
    bool step(const OutOfTime& out_of_time) override {
        placed_.use(true);
        const bool is_over = pass_.step(out_of_time);
        placed_.use(false);
        return is_over;
    }

  private:
    Placed& placed_;
    Slices pass_;
};

/// A pass: everything once, in this order.
Slices Daemon::pass() {
    const auto begun = std::chrono::steady_clock::now();
    const bool has_changed = std::exchange(machine_changed_, false);
    if (has_changed)
        for (auto reading = reread_machine(); !reading.step(a_part);)
            co_yield pause;
    update_claims();
    for (const auto& behaviour : shared_.behaviours)
        behaviour->begin_pass();
    if (has_changed && work().passes() > 1)
        for (auto round = queues_.round(); !round.step(a_part);)
            co_yield pause;
    shared_.executor.begin_pass();
    undo_.begin_pass();
    for (const auto until = std::chrono::steady_clock::now() + list_wait; awaits_listeners(until);)
        co_yield pause;
    for (auto ended = undo_.note_ended(); !ended.step(a_part);)
        co_yield pause;
    auto look = tasks_.look_at_all();
    for (bool is_new_slice = true; !look.part(is_new_slice);)
        is_new_slice = co_yield pause;
    for (auto end = tasks_.end_pass(); !end.step(a_part);)
        co_yield pause;
    undo_.end_tasks();
    for (const auto& behaviour : shared_.behaviours)
        for (auto turn = behaviour->after_tasks(); !turn.step(a_part);)
            co_yield pause;
    for (auto round = queues_.round(); !round.step(a_part);)
        co_yield pause;
    undo_.end_pass();
    for (const auto& behaviour : shared_.behaviours)
        for (auto turn = behaviour->end_pass(); !turn.step(a_part);)
            co_yield pause;
    while (!look_after_journal())
        co_yield pause;
    shared_.executor.end_pass();
    shared_.log.tell_held_back();
    last_pass_ = std::chrono::system_clock::now();
    pass_length_ = std::chrono::steady_clock::now() - begun;
    static_cast<void>(problems()); // new ones began now at the latest
    answers_.finish();
}

/// Reads the hardware again. If that fails, or an interface has changed meanwhile, the next pass tries again;
/// a reload meanwhile has read the machine by itself.
Slices Daemon::reread_machine() {
    auto& current = shared_.current;
    const auto world = current.world;
    const auto links_read = queues_.links_read();
    machine::MachineReader reader(shared_.root, &world->machine());
    auto done = reader.step(a_part);
    for (; done && !*done; done = reader.step(a_part))
        co_yield pause;
    if (!done)
        shared_.log.error("the machine could not be read again, going on with what is known: " +
                              done.error().to_string(),
                          "machine not read");
    if (!done || links_read != queues_.links_read())
        machine_changed_ = true;
    else if (world == current.world)
        current->update(reader.take());
}

/// The first list of listeners on the ports that policies ask for may come a moment later: a process that is
/// matched before that is looked at again.
bool Daemon::awaits_listeners(std::chrono::steady_clock::time_point until) {
    constexpr std::chrono::microseconds patience{100};
    auto* list = tasks_.sources().listeners();
    return list != nullptr && list->is_awaited(patience) && std::chrono::steady_clock::now() < until;
}

/// Writes the undo journal anew if it was removed or cut, and logs what is newly wrong with it. False: it
/// goes on.
bool Daemon::look_after_journal() {
    auto& journal = shared_.journal();
    const auto known = journal.faults();
    const bool is_done = journal.look_after_file(a_part);
    for (const auto& fault : journal.faults())
        if (std::ranges::find(known, fault.message, &Error::message) == known.end())
            shared_.log.error("the undo journal: " + fault.to_string());
    return is_done;
}

void Daemon::begin_pass(bool machine_changed) {
    if (!shared_.current.world || is_stopping_) return;
    machine_changed_ |= machine_changed;
    // A running pass always ends, whatever asks for the next.
    if (work().passing()) return shared_.want_pass();
    tasks_.events().begin_pass();
    answers_.begin();
    work().begin_pass(std::make_unique<Pass>(*this));
}

void Daemon::end_duties(const char* why, bool is_handover) {
    is_stopping_ = true;
    answers_.give_up(why);
    shared_.executor.begin_stop();
    tasks_.begin_stop();
    undo_.begin_stop();
    for (const auto& behaviour : shared_.behaviours)
        if (shared_.current.world) behaviour->begin_stop(is_handover);
}

void Daemon::begin_handover(std::function<void()> done) {
    end_duties("the daemon is being restarted", true);
    shared_.log.info("being restarted: all stays in place for the next daemon");
    if (!shared_.acts() || !shared_.current.world) return done();
    work().begin_end(hand_over(std::move(done)));
}

/// Last, as it may wait: looks at processes, and writes to a disk.
Slices Daemon::hand_over(std::function<void()> done) {
    for (const auto& behaviour : shared_.behaviours)
        for (auto last = behaviour->end(); !last.step(a_part);)
            co_yield pause;
    done();
}

void Daemon::begin_stop(std::function<void()> done) {
    end_duties("the daemon is stopping: what it changed is put back", false);
    if (!shared_.acts() || !shared_.current.world) return done();
    work().begin_end(stop(std::move(done)));
}

Slices Daemon::stop(std::function<void()> done) {
    // Tasks that a policy keeps have no record in force any more, and so are not restored. Units keep theirs.
    for (state::Journal::Cursor cursor; const auto entry = shared_.journal().next(cursor);) {
        const bool is_unit = std::holds_alternative<machine::UnitCpuset>(entry->subject);
        if (!is_unit && shared_.current->keeps_on_stop(entry->record->policy))
            shared_.report(shared_.executor.part(entry->subject, state::Standing::kept));
        co_yield pause;
    }
    // CPUs may have gone a moment ago, and the kernel may have widened masks for that.
    if (auto machine = machine::read_machine(shared_.root)) shared_.current->update(std::move(*machine));
    shared_.releases.release_all();
    update_claims();
    auto& placed = answers_.placed();
    placed.begin_pass();
    placed.use(true);
    // A task that no event has announced may have inherited a mask of ours from one that is restored later,
    // and come into the list of processes after the first round that restores none.
    constexpr unsigned enough_quiet = 2, most_rounds = 16;
    for (unsigned quiet = 0, round = 0; quiet < enough_quiet && round < most_rounds; ++round) {
        const auto before = placed.put_back();
        auto look = tasks_.look_at_all();
        for (bool is_new_slice = true; !look.part(is_new_slice);)
            is_new_slice = co_yield pause;
        quiet = placed.put_back() == before ? quiet + 1 : 0;
    }
    for (auto round = queues_.round(); !round.step(a_part);)
        co_yield pause;
    const auto count = to_string(placed.put_back());
    shared_.log.info(count.empty() ? "nothing had to be put back" : count + " put back as before");
    for (auto last = hand_over(std::move(done)); !last.step(a_part);)
        co_yield pause;
}

status::PolicyChanges& Placed::of(std::string_view policy) {
    const auto found = changes_.find(policy);
    return found != changes_.end() ? found->second : changes_[std::string(policy)];
}

void Placed::count(const planner::Action& action, const enforcer::Applied& applied) {
    const auto outcome = applied.outcome;
    if (outcome == enforcer::Outcome::gone) return;
    if (machine::is_queue(action.subject) && !counted_.insert(action.subject).second) return;
    auto& counts = of(policy_of(action));
    if (outcome == enforcer::Outcome::foreign) {
        ++counts.left;
    } else if (!enforcer::took_effect(outcome)) {
        ++(action.restore ? counts.not_put_back : counts.refused);
        if (counts.reason.empty()) counts.reason = reason_of(applied);
    } else if (action.restore) {
        counts.put_back.add(action.subject);
    } else if (is_kept_off(action)) {
        ++counts.kept_off;
    } else {
        counts.placed.add(action.subject);
    }
}

void Placed::carried(const planner::Action& action, const enforcer::Applied& applied) {
    if (is_in_pass_) count(action, applied);
    if (action.record || action.restore || is_kept_off(action) || !enforcer::took_effect(applied.outcome))
        return;
    auto& fresh = fresh_[action.policy];
    if (is_in_pass_ || !fresh.is_told) fresh.placed.add(action.subject);
}

void Placed::found_in_place(const machine::Subject& subject, std::string_view policy) {
    if (!is_in_pass_ || (machine::is_queue(subject) && counted_.contains(subject))) return;
    of(policy).in_place.add(subject);
}

void Placed::left(const std::string& policy) {
    if (is_in_pass_) ++of(policy).left;
}

void Placed::found_put_off(const machine::Subject& subject, std::string_view policy) {
    // An interrupt that said in this very pass that it never moves is refused, and counted as that.
    if (is_in_pass_ && (!machine::is_queue(subject) || counted_.insert(subject).second)) ++of(policy).put_off;
}

status::SubjectCounts Placed::put_back() const {
    status::SubjectCounts sum;
    for (const auto& [policy, counts] : changes_)
        sum += counts.put_back;
    return sum;
}

void Placed::begin_pass() {
    changes_.clear();
    counted_.clear();
}

void Placed::begin_queues() {
    for (auto& [policy, counts] : changes_) {
        counts.in_place.interrupts = 0;
        counts.in_place.steering = 0;
    }
}

std::vector<Placed::News> Placed::take_news() {
    std::vector<News> news;
    for (auto& [policy, fresh] : fresh_) {
        if (!fresh.placed.any()) continue;
        news.push_back({policy, std::exchange(fresh.placed, {})});
        fresh.is_told = true;
    }
    return news;
}

void Placed::drop_others(const policy::PolicySet& policies) {
    std::erase_if(fresh_, [&](const auto& entry) {
        return std::ranges::count(policies.policies, entry.first, &policy::Policy::name) == 0;
    });
}

void PassAnswers::begin() {
    placed_.begin_pass();
    std::ranges::move(std::exchange(waiting_, {}), std::back_inserter(joined_));
}

void PassAnswers::finish() {
    tell_news();
    const status::Changes done{.headline = {},
                               .is_dry_run = !shared_.acts(),
                               .policies = placed_.changes(),
                               .if_none = "nothing is under policy: there was nothing to place",
                               .note = shared_.acts() ? "" : "this is a dry run: nothing was changed"};
    for (auto& one : std::exchange(joined_, {})) {
        auto changes = done;
        changes.headline = one.headline;
        if (one.is_of_release) {
            changes.if_none = "there was nothing to put back";
            std::erase_if(changes.policies, [](const auto& entry) {
                const auto& policy = entry.second;
                return !policy.put_back.any() && policy.left + policy.not_put_back == 0;
            });
        }
        if (one.fault.empty())
            one.answer(status::to_text(changes));
        else
            one.answer(fail(one.fault + "\n" + status::message_of(changes)));
    }
}

void PassAnswers::policies_changed(const policy::PolicySet& policies) {
    placed_.drop_others(policies);
    // The pass under way no longer looks at all.
    std::ranges::move(std::exchange(joined_, {}), std::back_inserter(waiting_));
}

void PassAnswers::give_up(const std::string& why) {
    for (auto* list : {&waiting_, &joined_})
        for (auto& one : std::exchange(*list, {}))
            one.answer(fail(one.fault.empty() ? why : one.fault + "\n" + why));
}

void PassAnswers::tell_news() {
    const auto all = placed_.take_news();
    if (!shared_.acts()) return; // to a dry run, everything is new in each pass
    for (const auto& news : all)
        shared_.log.info(fmt::format("policy {}: {} placed", news.policy, to_string(news.placed)),
                         {"placements", most_told_a_minute},
                         {.message_id = placed_message, .policy = news.policy});
}

} // namespace affinityd::core
