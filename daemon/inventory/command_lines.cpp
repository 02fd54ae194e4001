// SPDX-License-Identifier: Apache-2.0
#include "inventory/command_lines.hpp"

#include "host/root.hpp"
#include "host/scheduler.hpp"
#include "host/signals.hpp"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

namespace affinityd::inventory {

namespace {

constexpr std::chrono::seconds long_silence{1}; ///< a busy machine is late, too
constexpr std::size_t most_waiting_for_one = 2, most_waiting = 16;

CommandLines::Answer read_all(const host::Fd& file, std::size_t limit) {
    auto text = host::read_rest(file, limit);
    return text ? CommandLines::Answer{0, std::move(*text)} : CommandLines::Answer{text.error(), {}};
}

} // namespace

/// The thread, and what it shares with the loop.
struct CommandLines::Reader {
    std::mutex mutex;
    std::condition_variable changed;
    TaskId process;
    uid_t user = 0;
    host::Fd file; ///< to be read; none: nothing is asked
    std::size_t limit = 0;
    std::optional<Answer> answer;
    bool is_left = false;    ///< the loop waits for it no more: it ends with its answer
    Clock::time_point asked; ///< the loop's, like the next

    void work(const host::Fd& arrived);
};

void CommandLines::Reader::work(const host::Fd& arrived) {
    std::ignore = host::prefer_low_latency(); // the loop waits for it
    std::unique_lock lock(mutex);
    while (true) {
        changed.wait(lock, [this] { return is_left || file; });
        if (!file) return;
        const auto asked_for = std::exchange(file, {});
        lock.unlock();
        auto found = read_all(asked_for, limit);
        lock.lock();
        answer = std::move(found);
        const bool is_last = is_left;
        lock.unlock(); // a thread that is woken would only wait for it
        const std::uint64_t one = 1;
        if (is_last) std::ignore = ::write(arrived.get(), &one, sizeof one);
        if (is_last) return;
        changed.notify_all();
        lock.lock();
    }
}

CommandLines::CommandLines(Clock::duration patience)
    : patience_(patience),
      arrived_(std::make_shared<const host::Fd>(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))) {}

CommandLines::~CommandLines() {
    if (!reader_) return;
    const std::lock_guard lock(reader_->mutex);
    reader_->is_left = true;
    reader_->changed.notify_one();
}

bool CommandLines::start() {
    auto reader = std::make_shared<Reader>();
    if (!host::start_thread([reader, arrived = arrived_] { reader->work(*arrived); })) return false;
    reader_ = std::move(reader);
    return true;
}

bool CommandLines::is_asked(const TaskId& process) const {
    return std::ranges::any_of(waiting_, [&](const auto& reader) { return reader->process == process; });
}

bool CommandLines::has_room(uid_t user) const {
    const auto is_users = [&](const auto& reader) { return reader->user == user; };
    return waiting_.size() < most_waiting &&
           std::ranges::count_if(waiting_, is_users) < static_cast<std::ptrdiff_t>(most_waiting_for_one);
}

CommandLines::Answer CommandLines::read(const TaskId& process, host::Fd file, std::size_t limit, uid_t user) {
    if (auto late = late_.extract(process)) return std::move(late.mapped());
    if (is_asked(process)) return {EAGAIN, {}};
    if (!has_room(user)) {
        has_refused_ = true;
        return {EAGAIN, {}};
    }
    if (!reader_ && !start()) return {EMFILE, {}};
    const auto& reader = reader_;
    std::unique_lock lock(reader->mutex);
    reader->process = process;
    reader->user = user;
    reader->file = std::move(file);
    reader->limit = limit;
    reader->answer.reset();
    reader->asked = Clock::now();
    lock.unlock();
    reader->changed.notify_all();
    lock.lock();
    if (reader->changed.wait_for(lock, patience_, [&] { return reader->answer.has_value(); }))
        return std::move(*reader->answer);
    reader->is_left = true;
    lock.unlock();
    waiting_.push_back(std::exchange(reader_, nullptr));
    return {EAGAIN, {}};
}

int CommandLines::fd() const { return arrived_->get(); }

std::vector<TaskId> CommandLines::take_late() {
    std::uint64_t count = 0;
    std::ignore = ::read(arrived_->get(), &count, sizeof count);
    std::vector<TaskId> processes;
    late_.clear();
    std::erase_if(waiting_, [&](const auto& reader) {
        const std::lock_guard its(reader->mutex);
        if (!reader->answer) return false;
        processes.push_back(reader->process);
        late_[reader->process] = std::move(*reader->answer);
        return true;
    });
    return processes;
}

std::vector<TaskId> CommandLines::silent(Clock::time_point now) const {
    std::vector<TaskId> processes;
    for (const auto& reader : waiting_)
        if (now - reader->asked >= long_silence) processes.push_back(reader->process);
    std::ranges::sort(processes);
    return processes;
}

} // namespace affinityd::inventory
