// SPDX-License-Identifier: Apache-2.0
#include "control/shared_answers.hpp"

#include "base/clock.hpp"

#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

namespace affinityd::control {

namespace {

using Clock = std::chrono::steady_clock;

struct Waiting {
    std::optional<uid_t> user; ///< no value: the privileged
    Call call;
};

using Value = std::shared_ptr<const Result<OwnedText>>;

struct Question {
    Value value; ///< null: it is being worked out
    Clock::time_point expires{};
    std::vector<Waiting> waiting;
};

void reply(Waiting& to, const Result<OwnedText>& value) {
    if (!value) return to.call.reply(std::unexpected(value.error()));
    // Texts are long: none is made for a reply that would be dropped.
    const bool has_room = to.call.has_room();
    to.call.reply(!has_room ? std::string() : to.user ? value->seen_by(*to.user) : value->full());
}

} // namespace

class SharedAnswers::State : public std::enable_shared_from_this<State> {
  public:
    State(sd_event* event, std::chrono::milliseconds kept) : event_(event), kept_(kept) {}

    void ask(const std::string& key, const Build& build, std::optional<uid_t> user, Call call) {
        drop_expired();
        const auto [found, is_new] = questions_.try_emplace(key);
        Waiting waiting{user, std::move(call)};
        if (found->second.value) return reply(waiting, *found->second.value);
        found->second.waiting.push_back(std::move(waiting));
        if (!is_new) return;
        build([ticket = Ticket(weak_from_this(), key)](Result<OwnedText> result) mutable {
            ticket.finish(std::move(result));
        });
    }

    /// No value: the question was given up without an answer.
    void finish(const std::string& key, std::optional<Result<OwnedText>> result) {
        auto question = questions_.extract(key);
        if (!question || !result) return; // which tells those who wait
        const auto value = std::make_shared<const Result<OwnedText>>(std::move(*result));
        for (auto& waiting : question.mapped().waiting)
            due_.emplace_back(std::move(waiting), value);
        arm_delivery();
        if (kept_ <= kept_.zero()) return;
        question.mapped() = {value, Clock::now() + kept_, {}};
        questions_.insert(std::move(question));
        arm_cleaning();
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

    void drop_expired() {
        const auto now = Clock::now();
        std::erase_if(questions_,
                      [&](const auto& entry) { return entry.second.value && entry.second.expires <= now; });
    }

    /// Replies go out one in a turn of the loop: each may be long.
    void arm_delivery() {
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

    /// The last answer that comes arms it last, so none stays when nothing is asked any more.
    void arm_cleaning() {
        sd_event_source* source = nullptr;
        if (sd_event_add_time_relative(event_, &source, CLOCK_MONOTONIC, usec_of(kept_), 0, on_cleaning,
                                       this) >= 0)
            cleaning_.reset(source);
    }

    static int on_cleaning(sd_event_source*, std::uint64_t, void* userdata) {
        static_cast<State*>(userdata)->drop_expired();
        return 0;
    }

    sd_event* event_;
    std::chrono::milliseconds kept_;
    std::unordered_map<std::string, Question> questions_;
    std::deque<std::pair<Waiting, Value>> due_;
    Source delivery_, cleaning_;
};

SharedAnswers::SharedAnswers(sd_event* event, std::chrono::milliseconds kept)
    : state_(std::make_shared<State>(event, kept)) {}
SharedAnswers::~SharedAnswers() = default;

void SharedAnswers::ask(const std::string& key, const Build& build, std::optional<uid_t> user, Call call) {
    state_->ask(key, build, user, std::move(call));
}

} // namespace affinityd::control
