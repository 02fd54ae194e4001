// SPDX-License-Identifier: Apache-2.0
// The order of a pass, what it begins and ends with, and the answers to those who wait for it.
#include "app/pass.hpp"

#include "app/daemon.hpp"
#include "machine/reader.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

namespace affinityd::app {

namespace {

constexpr unsigned most_told_a_minute = 30; ///< shown a minute
constexpr const char* reloaded_and_passed =
    "the policies were reloaded meanwhile: this is what the pass after that did";

} // namespace

/// One pass: everything once, in this order.
class Daemon::Pass final : public Job {
  public:
    explicit Pass(Daemon& daemon);
    bool step(const OutOfTime& out_of_time) override {
        daemon_.answers_.placed().use(true);
        const bool is_over = stages_.step(out_of_time);
        daemon_.answers_.placed().use(false);
        if (is_over) daemon_.answers_.finish();
        return is_over;
    }

  private:
    /// A reading that is under way, on top of the world that it began with.
    struct Reading {
        std::shared_ptr<World> world;
        std::uint64_t links_read;
        machine::MachineReader reader;
    };
    void begin_tasks();
    void end_queues();
    void end();
    [[nodiscard]] bool reread_machine(const OutOfTime& out_of_time);
    [[nodiscard]] bool await_listeners(const OutOfTime& out_of_time);
    [[nodiscard]] bool learn_usage(const OutOfTime& out_of_time);
    [[nodiscard]] bool look_after_journal(const OutOfTime& out_of_time);

    Daemon& daemon_;
    Sequence stages_;
    std::optional<Reading> reading_;
    std::optional<std::chrono::steady_clock::time_point> listeners_until_;
};

Daemon::Pass::Pass(Daemon& daemon) : daemon_(daemon) {
    auto& d = daemon_;
    const auto all_queues = [&d] { return std::make_unique<Slices>(d.queues_.round()); };
    const bool are_queues_first = d.machine_changed_ && d.work().passes() > 0;
    stages_.until([this](const auto& out) { return reread_machine(out); }).then([&d] {
        d.update_claims();
        d.shared_.current->use_steering(d.steering_.can_steer());
    });
    if (are_queues_first) stages_.then_do(all_queues);
    stages_.then([this] { begin_tasks(); })
        .until([this](const auto& out) { return await_listeners(out); })
        .until([&d](const auto& out) { return d.tasks_.look_at_all(out); })
        .until([&d](const auto& out) { return d.tasks_.end_pass(out); })
        .until([&d](const auto& out) { return d.joins_.tidy(out); })
        .then([&d] {
            d.undo_.end_tasks();
            d.bookkeeping_.begin_usage([&d](const auto& process) { return d.steering_.takes_none(process); });
        })
        .until([this](const auto& out) { return learn_usage(out); })
        .until([&d](const auto& out) { return d.balancer_.step(out); })
        .then([&d] { d.end_pass_of_writers(); })
        .then_do(all_queues)
        .then([this] { end_queues(); })
        .then([&d] {
            d.steering_.end_pass();
            // One with each pass: the disk may be slow.
            if (auto record = d.steering_.take_record()) d.bookkeeping_.keep(std::move(*record));
        })
        .until([&d](const auto& out) { return d.units_.step(out); })
        .until([&d](const auto& out) { return d.bookkeeping_.step_costs(out); })
        .until([this](const auto& out) { return look_after_journal(out); })
        .then([this] { end(); });
}

/// Reads the hardware again if it has changed. If that fails, or an interface has changed meanwhile, the next
/// pass tries again; a reload meanwhile has read the machine by itself.
bool Daemon::Pass::reread_machine(const OutOfTime& out_of_time) {
    auto& current = daemon_.shared_.current;
    if (!reading_) {
        if (!std::exchange(daemon_.machine_changed_, false)) return true;
        reading_.emplace(current.world, daemon_.queues_.links_read(),
                         machine::MachineReader(daemon_.shared_.root, &current->machine()));
    }
    auto done = reading_->reader.step(out_of_time);
    for (; done && !*done; done = reading_->reader.step(out_of_time))
        if (out_of_time()) return false;
    if (!done) {
        daemon_.shared_.log.error("the machine could not be read again, going on with what is known: " +
                                      done.error().to_string(),
                                  "machine not read");
        daemon_.machine_changed_ = true;
    } else if (reading_->links_read != daemon_.queues_.links_read()) {
        daemon_.machine_changed_ = true;
    } else if (reading_->world == current.world) {
        current->update(reading_->reader.take());
    }
    return true;
}

void Daemon::Pass::begin_tasks() {
    daemon_.shared_.executor.begin_pass();
    daemon_.undo_.begin_pass();
    daemon_.tasks_.begin_pass();
    daemon_.bookkeeping_.begin_pass();
    daemon_.writers_.begin_pass();
}

/// Waits for the first list of listeners on the ports that policies ask for, for a bounded time: a process
/// that is matched before that is looked at again.
bool Daemon::Pass::await_listeners(const OutOfTime& out_of_time) {
    constexpr std::chrono::milliseconds longest{300};
    constexpr std::chrono::microseconds patience{100};
    using Clock = std::chrono::steady_clock;
    auto* list = daemon_.tasks_.sources().listeners();
    if (!listeners_until_) listeners_until_ = Clock::now() + longest;
    while (list != nullptr && list->is_awaited(patience) && Clock::now() < *listeners_until_)
        if (out_of_time()) return false;
    return true;
}

/// Learns which interface serves which process. If lanes are given out anew, tasks move with them in the next
/// pass.
bool Daemon::Pass::learn_usage(const OutOfTime& out_of_time) {
    bool has_changed = false;
    if (!daemon_.bookkeeping_.step_usage(out_of_time, has_changed)) return false;
    if (has_changed) daemon_.shared_.want_pass();
    return true;
}

void Daemon::Pass::end_queues() {
    daemon_.undo_.end_pass();
    daemon_.tasks_.memory().take_moved();
    daemon_.units_.begin_pass(daemon_.bookkeeping_.groups());
    daemon_.bookkeeping_.begin_costs();
}

/// Writes the undo journal anew if it was removed or cut, and logs what is newly wrong with it.
bool Daemon::Pass::look_after_journal(const OutOfTime& out_of_time) {
    auto& journal = daemon_.shared_.journal();
    const auto known = journal.faults();
    const bool is_done = journal.look_after_file(out_of_time);
    for (const auto& fault : journal.faults())
        if (std::ranges::find(known, fault.message, &Error::message) == known.end())
            daemon_.shared_.log.error("the undo journal: " + fault.to_string());
    return is_done;
}

void Daemon::Pass::end() {
    daemon_.tasks_.placer().keep_slots();
    daemon_.shared_.executor.end_pass();
    daemon_.shared_.log.tell_held_back();
    daemon_.last_pass_ = std::chrono::system_clock::now();
    static_cast<void>(daemon_.problems()); // new ones began now at the latest
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

void PassAnswers::begin() {
    placed_.begin_pass();
    std::ranges::move(std::exchange(waiting_, {}), std::back_inserter(joined_));
}

void PassAnswers::finish() {
    tell_news();
    status::Changes changes{.headline = {},
                            .is_dry_run = !shared_.acts(),
                            .policies = placed_.changes(),
                            .if_none = "nothing is under policy: there was nothing to place",
                            .note = {}};
    for (auto& one : std::exchange(joined_, {})) {
        changes.headline = one.headline;
        changes.note.clear();
        for (const std::string& other :
             {one.note, std::string(shared_.acts() ? "" : "this is a dry run: nothing was changed")})
            if (!other.empty()) changes.note += (changes.note.empty() ? "" : "\n") + other;
        if (one.fault.empty())
            one.answer(status::to_text(changes));
        else
            one.answer(fail(one.fault + "\n" + status::message_of(changes)));
    }
}

void PassAnswers::policies_changed(const policy::PolicySet& policies) {
    placed_.forget_others(policies);
    // The pass under way no longer looks at all.
    std::ranges::move(std::exchange(joined_, {}), std::back_inserter(waiting_));
    for (auto& one : waiting_)
        one.note = reloaded_and_passed;
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

} // namespace affinityd::app
