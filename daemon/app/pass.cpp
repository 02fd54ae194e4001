// SPDX-License-Identifier: Apache-2.0
#include "app/pass.hpp"

#include "app/log.hpp"
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

/// A reading that is under way, on top of the world that it began with.
struct Reading {
    std::shared_ptr<World> world;
    machine::MachineReader reader;
};

void complain(Log& log, const Error& error) {
    log.error("the machine could not be read again, going on with what is known: " + error.to_string(),
              "machine not read");
}

} // namespace

Sequence::Stage reread_machine(const host::Root& root, Current& current, bool& wanted, Log& log) {
    return [&root, &current, &wanted, &log,
            reading = std::shared_ptr<Reading>()](const OutOfTime& out_of_time) mutable {
        if (!reading && !std::exchange(wanted, false)) return true;
        if (!reading) {
            reading = std::make_shared<Reading>(
                Reading{current.world, machine::MachineReader(root, &current->machine())});
            current.reread.clear();
        }
        auto done = reading->reader.step(out_of_time);
        for (; done && !*done; done = reading->reader.step(out_of_time))
            if (out_of_time()) return false;
        if (!done) {
            complain(log, done.error());
            wanted = true;                            // the next pass tries again
        } else if (reading->world == current.world) { // else a reload read the machine by itself
            auto machine = reading->reader.take();
            machine::keep_younger(current->machine(), current.reread, machine);
            current->update(std::move(machine));
        }
        return true;
    };
}

Sequence::Stage reread_nic(const host::Root& root, Current& current, const std::string& nic, Log& log) {
    return [&root, &current, &log, nic,
            reader = std::shared_ptr<machine::InterfaceReader>()](const OutOfTime& out_of_time) mutable {
        if (!reader) reader = std::make_shared<machine::InterfaceReader>(root, nic, current->machine());
        const auto done = reader->step(out_of_time);
        if (done && !*done) return false;
        if (!done) {
            complain(log, done.error());
            return true;
        }
        machine::Machine machine = current->machine();
        reader->put_into(machine);
        current->update(std::move(machine));
        current.reread.insert(nic);
        return true;
    };
}

Sequence::Stage await_listeners(inventory::FactSources& sources) {
    return [&sources, until = std::optional<std::chrono::steady_clock::time_point>()](
               const OutOfTime& out_of_time) mutable {
        constexpr std::chrono::milliseconds longest{300};
        constexpr std::chrono::microseconds patience{100};
        auto* list = sources.listeners();
        if (!until) until = std::chrono::steady_clock::now() + longest;
        while (list != nullptr && list->is_awaited(patience) && std::chrono::steady_clock::now() < *until)
            if (out_of_time()) return false;
        return true;
    };
}

Sequence::Stage learn_latencies(LatencySource& source, const Current& current, const std::string& state_dir) {
    return [&source, &current, &state_dir, is_begun = false](const OutOfTime& out_of_time) mutable {
        if (!std::exchange(is_begun, true)) source.begin(*current.world, state_dir);
        return source.step(*current.world, out_of_time);
    };
}

Sequence::Stage look_after_journal(state::Journal& journal, Log& log) {
    return [&journal, &log](const OutOfTime& out_of_time) {
        const auto known = journal.faults();
        const bool is_done = journal.look_after_file(out_of_time);
        for (const auto& fault : journal.faults())
            if (std::ranges::find(known, fault.message, &Error::message) == known.end())
                log.error("the undo journal: " + fault.to_string());
        return is_done;
    };
}

Sequence::Stage learn_nic_usage(Bookkeeping& bookkeeping, const Steering& steering,
                                std::function<void()> changed) {
    return [&bookkeeping, &steering, changed = std::move(changed),
            is_begun = false](const OutOfTime& out_of_time) mutable {
        if (!std::exchange(is_begun, true))
            bookkeeping.begin_usage(
                [&](const KnownProcess& process) { return steering.takes_none(process); });
        bool has_changed = false;
        if (!bookkeeping.step_usage(out_of_time, has_changed)) return false;
        if (has_changed) changed();
        return true;
    };
}

namespace {

constexpr unsigned most_told_a_minute = 30; ///< shown a minute: as many as Log shows of a kind
constexpr const char* reloaded = "the policies were reloaded meanwhile";
constexpr const char* reloaded_and_passed =
    "the policies were reloaded meanwhile: this is what the pass after that did";

} // namespace

/// Says when the pass works and when it is over.
class PassAnswers::Watched final : public Job {
  public:
    Watched(PassAnswers& answers, std::unique_ptr<Job> pass) : answers_(answers), pass_(std::move(pass)) {}
    bool step(const OutOfTime& out_of_time) override {
        answers_.placed_.use(true);
        const bool is_over = pass_->step(out_of_time);
        answers_.placed_.use(false);
        if (is_over) answers_.finish();
        return is_over;
    }

  private:
    PassAnswers& answers_;
    std::unique_ptr<Job> pass_;
};

std::unique_ptr<Job> PassAnswers::watch(std::unique_ptr<Job> pass) {
    if (!late_.empty())
        answer(std::exchange(late_, {}), "systemd has not answered for all units: see affinityctl status");
    placed_.begin_pass();
    std::ranges::move(std::exchange(waiting_, {}), std::back_inserter(joined_));
    return std::make_unique<Watched>(*this, std::move(pass));
}

void PassAnswers::finish() {
    tell_news();
    std::vector<Waiting> to;
    for (auto& one : std::exchange(joined_, {})) {
        auto& next = std::exchange(one.is_overtaken, false) ? waiting_ : to;
        next.push_back(std::move(one));
    }
    if (to.empty()) return;
    if (parts_.is_busy())
        late_ = std::move(to);
    else
        answer(std::move(to), {});
}

void PassAnswers::unit_answered(const std::string& unit, const std::string& policy,
                                const FenceResult& result) {
    if (!policy.empty()) placed_.answered(unit, policy, result);
    if (!late_.empty() && !parts_.is_busy()) answer(std::exchange(late_, {}), {});
}

void PassAnswers::answer(std::vector<Waiting> to, const std::string& note) {
    status::Changes changes{.headline = {},
                            .is_dry_run = !parts_.acts,
                            .policies = placed_.changes(),
                            .if_none = "nothing is under policy: there was nothing to place",
                            .note = {}};
    for (auto& one : to) {
        changes.headline = one.headline;
        changes.note = note;
        for (const std::string& other :
             {one.note, std::string(parts_.acts ? "" : "this is a dry run: nothing was changed")})
            if (!other.empty()) changes.note += (changes.note.empty() ? "" : "\n") + other;
        if (one.fault.empty())
            one.answer(status::to_text(changes));
        else
            one.answer(fail(one.fault + "\n" + status::message_of(changes)));
    }
}

void PassAnswers::policies_changed(const policy::PolicySet& policies) {
    placed_.forget_others(policies);
    for (auto& one : waiting_)
        one.note = reloaded_and_passed;
    for (auto& one : joined_) {
        one.note = reloaded_and_passed;
        one.is_overtaken = true;
    }
    for (auto& one : late_)
        one.note = reloaded;
}

void PassAnswers::give_up(const std::string& why) {
    for (auto* list : {&waiting_, &joined_, &late_})
        for (auto& one : std::exchange(*list, {}))
            one.answer(fail(one.fault.empty() ? why : one.fault + "\n" + why));
}

void PassAnswers::tell_news() {
    const auto all = placed_.take_news();
    if (!parts_.acts) return; // to a dry run, everything is new in each pass
    for (const auto& news : all)
        parts_.log.tell(placed_message,
                        fmt::format("policy {}: {} placed", news.policy, to_string(news.placed)),
                        {"placements", 0, most_told_a_minute});
}

} // namespace affinityd::app
