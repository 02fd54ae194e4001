// SPDX-License-Identifier: Apache-2.0
#include "control/shared_answers.hpp"

#include "base/clock.hpp"
#include "control/rate_limit.hpp"

#include <algorithm>
#include <chrono>
#include <deque>
#include <unordered_map>
#include <utility>

namespace affinityd::control {

namespace {

using Clock = std::chrono::steady_clock;

struct Waiting {
    std::optional<uid_t> user; ///< no value: the privileged
    Call call;
};

using Value = std::shared_ptr<const Result<OwnedText>>;

struct Question {
    Value value;               ///< null: not there yet
    Clock::time_point asked{}; ///< when it was begun to be worked out
    Clock::time_point expires{};
    bool is_under_way = false;
    std::deque<Waiting> waiting;
};

void reply(Waiting& to, const Result<OwnedText>& value) {
    if (value)
        to.call.reply(to.user ? value->seen_by(*to.user) : value->full());
    else
        to.call.reply(std::unexpected(value.error()));
}

} // namespace

class SharedAnswers::State : public std::enable_shared_from_this<State> {
  public:
    State(sd_event* event, const Terms& terms)
        : event_(event), terms_(terms), budget_(terms.builds_per_second, terms.builds_at_once) {}

    void ask(const std::string& key, const Build& build, std::optional<uid_t> user, Call call) {
        const auto now = Clock::now();
        drop_expired(now);
        auto found = questions_.find(key);
        if (found == questions_.end()) {
            if (questions_.size() >= terms_.most_questions)
                return fail_for_limits(call, "too many different questions at once");
            found = questions_.try_emplace(key).first;
        }
        auto& question = found->second;
        Waiting waiting{user, std::move(call)};
        if (question.value) return reply(waiting, *question.value);
        if (question.waiting.size() >= terms_.most_waiting)
            return fail_for_limits(waiting.call, "too many callers wait for this answer");
        if (!question.is_under_way && !budget_.take(now)) {
            fail_for_limits(waiting.call, "too many different questions at once");
            questions_.erase(found);
            return;
        }
        question.waiting.push_back(std::move(waiting));
        if (!std::exchange(question.is_under_way, true)) begin(key, question, build, now);
    }

    /// No value: the question was given up without an answer.
    void finish(const std::string& key, std::optional<Result<OwnedText>> result) {
        const auto found = questions_.find(key);
        if (found == questions_.end()) return;
        auto& question = found->second;
        question.is_under_way = false;
        if (!result) {
            questions_.erase(found); // and tells those who wait
            return;
        }
        const auto now = Clock::now();
        question.value = std::make_shared<const Result<OwnedText>>(std::move(*result));
        question.expires = now + use_of(question, now);
        for (auto& waiting : question.waiting)
            due_.emplace_back(std::move(waiting), question.value);
        question.waiting.clear();
        arm_delivery();
        if (question.expires <= now)
            questions_.erase(found);
        else
            arm_cleaning(question.expires - now);
    }

  private:
    /// Finishes its question also if the answer is dropped.
    struct Ticket {
        Ticket(std::weak_ptr<State> to, std::string what) : state(std::move(to)), key(std::move(what)) {}
        Ticket(Ticket&& other) noexcept : state(std::exchange(other.state, {})), key(std::move(other.key)) {}
        Ticket& operator=(Ticket&&) = delete;
        Ticket(const Ticket&) = delete;
        Ticket& operator=(const Ticket&) = delete;
        ~Ticket() { finish(std::nullopt); }
        void finish(std::optional<Result<OwnedText>> result) {
            if (const auto living = std::exchange(state, {}).lock()) living->finish(key, std::move(result));
        }
        std::weak_ptr<State> state;
        std::string key;
    };

    void begin(const std::string& key, Question& question, const Build& build, Clock::time_point now) {
        question.asked = now;
        build([ticket = Ticket(weak_from_this(), key)](Result<OwnedText> result) mutable {
            ticket.finish(std::move(result));
        });
    }

    [[nodiscard]] Clock::duration use_of(const Question& question, Clock::time_point now) const {
        const auto& value = *question.value;
        if ((value ? value->size() : 0) < terms_.least_bytes) return {};
        return std::clamp<Clock::duration>((now - question.asked) * terms_.share, terms_.shortest_use,
                                           terms_.longest_use);
    }

    void drop_expired(Clock::time_point now) {
        std::erase_if(questions_,
                      [&](const auto& entry) { return entry.second.value && entry.second.expires <= now; });
    }

    /// Replies go out one in a turn of the loop: each may be long.
    void arm_delivery() {
        if (due_.empty()) return;
        sd_event_source* source = nullptr;
        if (sd_event_add_defer(event_, &source, on_delivery, this) < 0) return due_.clear();
        delivery_.reset(source);
        sd_event_source_set_enabled(source, SD_EVENT_ON);
    }

    static int on_delivery(sd_event_source* source, void* userdata) {
        auto& self = *static_cast<State*>(userdata);
        if (!self.due_.empty()) {
            reply(self.due_.front().first, *self.due_.front().second);
            self.due_.pop_front();
        }
        if (self.due_.empty()) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        return 0;
    }

    /// Answers may be long, so none is kept for longer than it is used.
    void arm_cleaning(Clock::duration after) {
        sd_event_source* source = nullptr;
        const auto wait = std::chrono::ceil<std::chrono::microseconds>(after);
        if (sd_event_add_time_relative(event_, &source, CLOCK_MONOTONIC, usec_of(wait), 0, on_cleaning,
                                       this) < 0)
            return;
        cleaning_.reset(source);
    }

    static int on_cleaning(sd_event_source*, std::uint64_t, void* userdata) {
        auto& self = *static_cast<State*>(userdata);
        const auto now = Clock::now();
        self.drop_expired(now);
        Clock::duration next = Clock::duration::max();
        for (const auto& [key, question] : self.questions_)
            if (question.value) next = std::min(next, question.expires - now);
        if (next != Clock::duration::max()) self.arm_cleaning(next);
        return 0;
    }

    sd_event* event_;
    Terms terms_;
    std::unordered_map<std::string, Question> questions_;
    std::deque<std::pair<Waiting, Value>> due_;
    TokenBucket budget_;
    Source delivery_, cleaning_;
};

SharedAnswers::SharedAnswers(sd_event* event, const Terms& terms)
    : state_(std::make_shared<State>(event, terms)) {}
SharedAnswers::~SharedAnswers() = default;

void SharedAnswers::ask(const std::string& key, const Build& build, std::optional<uid_t> user, Call call) {
    state_->ask(key, build, user, std::move(call));
}

} // namespace affinityd::control
