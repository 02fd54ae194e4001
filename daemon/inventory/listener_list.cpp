// SPDX-License-Identifier: Apache-2.0
#include "inventory/listener_list.hpp"

#include "base/clock.hpp"
#include "host/blocked_signals.hpp"
#include "host/fd.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <tuple>
#include <unordered_set>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

namespace affinityd::inventory {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds shortest_pause{20}, pause_after_fault{500}, most_between_readings{4000};
constexpr int pauses_per_reading = 19; // a twentieth of a CPU
constexpr int fewest_pauses = 4;       // of very long readings

/// Whoever begins to listen is seen in time although others have so many sockets that a list takes long.
Clock::duration pause_after(std::chrono::nanoseconds used, bool is_read) {
    const auto pause = std::clamp<Clock::duration>(
        pauses_per_reading * used, is_read ? shortest_pause : pause_after_fault, most_between_readings);
    return std::max<Clock::duration>(pause, fewest_pauses * used);
}

/// Where the next of a process's sockets may be in the list. One that has many goes through both lists at the
/// pace of the longer one.
auto find_next(const std::vector<Listener>& list, std::vector<Listener>::const_iterator from,
               std::uint64_t inode, bool are_many) {
    const auto is_before = [&](const Listener& listener) { return listener.inode < inode; };
    return are_many ? std::find_if_not(from, list.end(), is_before)
                    : std::partition_point(from, list.end(), is_before);
}

} // namespace

struct ListenerList::State {
    State(const host::Root& root, const ListenerLimits& its_limits)
        : limits(its_limits), reader(root, its_limits) {}

    struct Question {
        PortRanges ports;
        std::shared_ptr<const Listeners> list;   ///< that is known; null: none of these ports has come yet
        std::shared_ptr<const Listeners> former; ///< the last one of other ports
        std::unordered_set<int> waiting;         ///< processes, for the answer
    };
    struct Answer {
        std::shared_ptr<const Listeners> list;
        bool differs = false, has_new = false;
    };
    const ListenerLimits limits;
    ListenerReader reader; ///< the thread's
    host::Fd arrived;
    std::mutex mutex;
    std::condition_variable_any changed;
    // Under the mutex:
    Question question; ///< the next one
    std::optional<Error> fault;
    std::unordered_set<int> told; ///< by take_news(): they may have what there is now
    News news;
    Clock::time_point next{}; ///< no list is begun before that
    bool is_asked = false;

    void work(const std::stop_token& stop);
    [[nodiscard]] Result<Answer> read(const Question& asked, const std::stop_token& stop);
    void take(Result<Answer> answer, const Question& asked);
    std::jthread thread; ///< last, so that it ends before what it uses
};

void ListenerList::State::work(const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    const auto is_wanted = [this] { return is_asked && !question.ports.empty(); };
    while (changed.wait(lock, stop, is_wanted) && !stop.stop_requested()) {
        if (Clock::now() < next) {
            changed.wait_until(lock, stop, next, [this, until = next] { return next != until; });
            continue;
        }
        is_asked = false;
        const Question now{question.ports, question.list, question.former,
                           std::exchange(question.waiting, {})};
        lock.unlock();
        const auto begun = thread_time();
        auto answer = read(now, stop);
        const auto used = thread_time() - begun;
        lock.lock();
        if (now.ports != question.ports) continue; // other ports matter now, which ends the pause, too
        next = Clock::now() + pause_after(used, answer.has_value());
        take(std::move(answer), now);
        changed.notify_all();
    }
}

Result<ListenerList::State::Answer> ListenerList::State::read(const Question& asked,
                                                              const std::stop_token& stop) {
    const auto* before = asked.list.get();
    auto read = reader.read(asked.ports, before != nullptr ? before : asked.former.get(),
                            [&] { return stop.stop_requested(); });
    if (!read) return std::unexpected(std::move(read.error()));
    Answer answer;
    answer.differs = before == nullptr || before->sockets != read->sockets;
    answer.has_new = before != nullptr && !std::ranges::includes(before->sockets, read->sockets);
    answer.list = std::make_shared<const Listeners>(std::move(*read));
    return answer;
}

void ListenerList::State::take(Result<Answer> answer, const Question& asked) {
    fault = answer ? std::nullopt : std::optional(answer.error());
    if (!answer) {
        question.waiting.insert(asked.waiting.begin(), asked.waiting.end());
        is_asked = true;
        return;
    }
    question.list = std::move(answer->list);
    question.former.reset();
    if (!answer->differs) return;
    news.has_new |= answer->has_new;
    news.processes.insert(news.processes.end(), asked.waiting.begin(), asked.waiting.end());
    const std::uint64_t one = 1;
    std::ignore = ::write(arrived.get(), &one, sizeof one); // a counter that is full is readable
}

ListenerList::ListenerList(const host::Root& root, const ListenerLimits& limits)
    : state_(std::make_unique<State>(root, limits)) {
    state_->arrived.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
}

ListenerList::~ListenerList() = default;

void ListenerList::start() {
    if (state_->thread.joinable()) return;
    const host::BlockedSignals blocked;
    try {
        state_->thread =
            std::jthread([state = state_.get()](const std::stop_token& stop) { state->work(stop); });
    } catch (const std::system_error& error) { // the next ask() tries again
        const std::lock_guard lock(state_->mutex);
        state_->fault = fail("no thread is to be had", {}, error.code().value()).error();
    }
}

void ListenerList::want(PortRanges ports) {
    const std::lock_guard lock(state_->mutex);
    if (ports == state_->question.ports) return;
    state_->question.ports = std::move(ports);
    if (state_->question.list) state_->question.former = std::move(state_->question.list);
    state_->question.list.reset();
    state_->fault.reset();
    state_->news = {};
    state_->next = {};
    state_->is_asked = true;
    state_->changed.notify_all();
}

void ListenerList::ask() {
    {
        const std::lock_guard lock(state_->mutex);
        if (state_->question.ports.empty()) return;
        state_->is_asked = true;
        state_->changed.notify_all();
    }
    start();
}

std::optional<ListenPorts> ListenerList::find(int pid, const std::vector<std::uint64_t>& inodes) {
    constexpr std::size_t few = 64;
    std::shared_ptr<const Listeners> list;
    bool is_asked = true;
    {
        const std::lock_guard lock(state_->mutex);
        if (state_->question.ports.empty()) return ListenPorts{};
        list = state_->question.list;
        if (!list || state_->told.erase(pid) == 0) {
            if (state_->question.waiting.size() < most_waiting) state_->question.waiting.insert(pid);
            is_asked = std::exchange(state_->is_asked, true);
        }
        if (!is_asked) state_->changed.notify_all();
    }
    if (!state_->thread.joinable()) start();
    if (!list) return std::nullopt;
    std::vector<std::uint16_t> ports;
    bool are_all = true;
    auto at = list->sockets.begin();
    for (const auto inode : inodes) {
        at = find_next(list->sockets, at, inode, inodes.size() > few);
        const bool is_there = at != list->sockets.end() && at->inode == inode;
        if (is_there) ports.push_back(at->port);
        are_all &= is_there || list->are_all();
    }
    std::ranges::sort(ports);
    const auto rest = std::ranges::unique(ports);
    ports.erase(rest.begin(), rest.end());
    return ListenPorts{std::move(ports), are_all};
}

bool ListenerList::is_awaited(std::chrono::microseconds patience) {
    std::unique_lock lock(state_->mutex);
    const auto is_there = [this] {
        return state_->question.list || state_->fault || state_->question.ports.empty();
    };
    return !state_->changed.wait_for(lock, patience, is_there);
}

int ListenerList::fd() const { return state_->arrived.get(); }

ListenerList::News ListenerList::take_news() {
    std::uint64_t count = 0;
    std::ignore = ::read(state_->arrived.get(), &count, sizeof count);
    const std::lock_guard lock(state_->mutex);
    auto news = std::exchange(state_->news, {});
    state_->told = {news.processes.begin(), news.processes.end()};
    return news;
}

ListenerList::Lack ListenerList::lack() const {
    const std::lock_guard lock(state_->mutex);
    if (!state_->question.list) return {};
    return {state_->question.list->crowded, state_->question.list->unread};
}

const ListenerLimits& ListenerList::limits() const { return state_->limits; }

std::optional<Error> ListenerList::fault() const {
    const std::lock_guard lock(state_->mutex);
    return state_->fault;
}

} // namespace affinityd::inventory
