// SPDX-License-Identifier: Apache-2.0
#include "inventory/users.hpp"

#include "base/text.hpp"
#include "host/fd.hpp"
#include "host/signals.hpp"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include <grp.h>
#include <pwd.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace affinityd::inventory {

namespace {

constexpr std::size_t file_limit = 4U << 20; // some 60,000 users; sites with more use a directory service
constexpr std::size_t longest_name = 256;    // LOGIN_NAME_MAX

} // namespace

std::unordered_map<unsigned, std::string> parse_names(std::string_view text) {
    std::unordered_map<unsigned, std::string> names;
    constexpr std::string_view marks = "+-#"; // of other lines
    for (const auto line : split(text, '\n')) {
        const auto fields = split(line, ':');
        const auto name = fields.front();
        if (fields.size() < 3 || name.empty() || name.size() > longest_name || marks.contains(name.front()))
            continue;
        if (const auto id = parse_number<unsigned>(fields[2])) names.emplace(*id, name);
    }
    return names;
}

const UserNames::Names& UserNames::names_of(NameKind kind) {
    auto& file = kind == NameKind::user ? users_ : groups_;
    if (file.is_checked) return file.names;
    file.is_checked = true;
    const char* name = kind == NameKind::user ? "passwd" : "group";
    auto stamp = root_->etc().stamp(name).value_or("");
    if (!stamp.empty() && stamp == file.stamp) return file.names;
    const auto text = root_->etc().read(name, file_limit);
    if (!text) return file.names; // cannot be read now: what was known holds
    file.names = *text ? parse_names(**text) : Names{};
    file.stamp = std::move(stamp);
    return file.names;
}

std::string UserNames::find(NameKind kind, unsigned id) {
    const auto& names = names_of(kind);
    if (const auto found = names.find(id); found != names.end()) return found->second;
    if (ask_)
        if (auto name = ask_(kind, id); name && !name->empty()) return std::move(*name);
    return std::to_string(id);
}

void UserNames::refresh() { users_.is_checked = groups_.is_checked = false; }

namespace {

template <class Record, class Ask>
std::optional<std::string> name_of(unsigned id, char* Record::*name, Ask ask) {
    constexpr std::size_t most = 1U << 20;                            // for all members of a group
    const auto buffer = std::make_unique_for_overwrite<char[]>(most); // NOLINT: for a function of C
    Record record{};
    Record* found = nullptr;
    if (ask(id, &record, buffer.get(), most, &found) != 0 || found == nullptr) return std::nullopt;
    return std::string(record.*name);
}

using Question = std::pair<NameKind, unsigned>;

struct Answer {
    std::optional<std::string> name; ///< no value: not yet
    bool is_asked = false;           ///< in the queue, or being answered
    bool is_stale = false;
};

} // namespace

std::optional<std::string> ask_name_service(NameKind kind, unsigned id) {
    return kind == NameKind::user ? name_of(id, &passwd::pw_name, ::getpwuid_r)
                                  : name_of(id, &::group::gr_name, ::getgrgid_r);
}

struct NameService::State {
    AskName ask;
    host::Fd arrived;
    std::mutex mutex;
    std::condition_variable changed;
    std::map<Question, Answer> answers;
    std::deque<Question> questions;
    bool is_running = false; ///< the thread has been started
    bool is_over = false;
    bool has_news = false;

    void work();
};

void NameService::State::work() {
    std::unique_lock lock(mutex);
    while (true) {
        changed.wait(lock, [this] { return is_over || !questions.empty(); });
        if (is_over) return;
        const auto question = questions.front();
        questions.pop_front();
        lock.unlock();
        auto name = ask(question.first, question.second).value_or("");
        lock.lock();
        auto& answer = answers[question];
        has_news = has_news || answer.name != name;
        answer = {std::move(name), false, false};
        const std::uint64_t one = 1;
        if (has_news)
            std::ignore = ::write(arrived.get(), &one, sizeof one); // a counter that is full is readable
    }
}

NameService::NameService(AskName ask) : state_(std::make_shared<State>()) {
    state_->ask = std::move(ask);
    state_->arrived.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

NameService::~NameService() {
    const std::lock_guard lock(state_->mutex);
    state_->is_over = true;
    state_->changed.notify_one();
}

std::optional<std::string> NameService::find(NameKind kind, unsigned id) {
    const Question question{kind, id};
    const std::lock_guard lock(state_->mutex);
    if (state_->answers.size() >= most_answers && !state_->answers.contains(question)) {
        state_->answers.clear();
        state_->questions.clear();
    }
    auto& answer = state_->answers[question];
    if (answer.name && !answer.is_stale) return answer.name;
    if (answer.is_asked || state_->questions.size() >= most_questions) return answer.name;
    if (!state_->is_running) state_->is_running = host::start_thread([state = state_] { state->work(); });
    if (!state_->is_running) return answer.name; // the next process of this user tries again
    answer.is_asked = true;
    state_->questions.push_back(question);
    state_->changed.notify_one();
    return answer.name;
}

void NameService::refresh() {
    const std::lock_guard lock(state_->mutex);
    for (auto& [question, answer] : state_->answers)
        answer.is_stale = true;
}

int NameService::fd() const { return state_->arrived.get(); }

bool NameService::take_answers() {
    std::uint64_t count = 0;
    std::ignore = ::read(state_->arrived.get(), &count, sizeof count);
    const std::lock_guard lock(state_->mutex);
    return std::exchange(state_->has_news, false);
}

} // namespace affinityd::inventory
