// SPDX-License-Identifier: Apache-2.0
#include "app/pass_answers.hpp"

#include "app/message_ids.hpp"

#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace affinityd::app {

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
