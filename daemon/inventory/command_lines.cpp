// SPDX-License-Identifier: Apache-2.0
#include "inventory/command_lines.hpp"

#include "host/scheduler.hpp"
#include "host/signals.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

namespace affinityd::inventory {

namespace {

using namespace std::chrono_literals;

constexpr CommandLines::Clock::duration first_pause = 1s, longest_pause = 60s, long_silence = 1s;
constexpr CommandLines::Clock::duration useful =
    1s; ///< of a late answer: the process may run another program later
constexpr std::size_t most_pauses = 4096;

CommandLines::Answer read_all(const host::Fd& file, std::size_t limit) {
    CommandLines::Answer answer;
    std::array<char, 16384> chunk; // NOLINT: filled by read
    while (answer.text.size() < limit) {
        const auto got = ::read(file.get(), chunk.data(), std::min(chunk.size(), limit - answer.text.size()));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) answer.code = errno;
        if (got <= 0) break;
        answer.text.append(chunk.data(), static_cast<std::size_t>(got));
    }
    return answer;
}

} // namespace

/// What has come too late, from all threads.
struct CommandLines::Arrivals {
    host::Fd event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    std::mutex mutex;
    std::vector<Reader*> readers; ///< each is among those that the loop has left

    void add(Reader* reader) {
        const std::lock_guard lock(mutex);
        readers.push_back(reader);
        const std::uint64_t one = 1;
        std::ignore = ::write(event.get(), &one, sizeof one);
    }
};

/// One thread, and what it shares with the loop.
struct CommandLines::Reader {
    std::mutex mutex;
    std::condition_variable changed;
    TaskId process;
    uid_t user = 0; ///< the loop's: whose process, once it is among those that are waited for
    host::Fd file;  ///< to be read; none: nothing is asked
    std::size_t limit = 0;
    std::optional<Answer> answer;
    bool is_over = false;    ///< nobody waits for it any more: it ends with its answer
    Clock::time_point asked; ///< the loop's, like the next
    bool is_told = false;

    void work(Arrivals& arrivals);
};

void CommandLines::Reader::work(Arrivals& arrivals) {
    std::ignore = host::prefer_low_latency(); // the loop waits for it
    std::unique_lock lock(mutex);
    while (true) {
        changed.wait(lock, [this] { return is_over || file; });
        if (!file) return;
        const auto asked_for = std::exchange(file, {});
        lock.unlock();
        auto found = read_all(asked_for, limit);
        lock.lock();
        answer = std::move(found);
        const bool is_last = is_over;
        // Whom a notice wakes would only wait for the lock.
        lock.unlock();
        if (is_last) return arrivals.add(this);
        changed.notify_all(); // the loop waits on it, too
        lock.lock();
    }
}

CommandLines::CommandLines(Clock::duration patience)
    : patience_(patience), arrivals_(std::make_shared<Arrivals>()) {}

CommandLines::~CommandLines() {
    if (!reader_) return;
    const std::lock_guard lock(reader_->mutex);
    reader_->is_over = true;
    reader_->changed.notify_one();
}

bool CommandLines::start() {
    auto reader = std::make_shared<Reader>();
    const host::BlockedSignals blocked;
    try {
        std::thread([reader, arrivals = arrivals_] { reader->work(*arrivals); }).detach();
    } catch (const std::system_error&) {
        return false;
    }
    reader_ = std::move(reader);
    return true;
}

std::size_t CommandLines::count_waiting(uid_t user) const {
    return static_cast<std::size_t>(
        std::ranges::count(waiting_, user, [](const auto& reader) { return reader->user; }));
}

std::optional<CommandLines::Answer> CommandLines::find(const TaskId& process, const User& user,
                                                       Clock::time_point now) {
    if (const auto late = late_.find(process); late != late_.end()) {
        auto found = std::move(late->second);
        late_.erase(late);
        if (now - found.came < useful) return std::move(found.answer);
    }
    const auto is_asked = [&](const auto& reader) { return reader->process == process; };
    if (std::ranges::any_of(waiting_, is_asked)) return Answer{EAGAIN, {}};
    if (waiting_.size() < most_waiting_for_one) return std::nullopt;
    if (waiting_.size() < most_waiting && count_waiting(user()) < most_waiting_for_one) return std::nullopt;
    was_full_ = true;
    return Answer{EAGAIN, {}};
}

CommandLines::Answer CommandLines::read(const TaskId& process, host::Fd file, std::size_t limit,
                                        const User& user) {
    if (!reader_ && !start()) return {EMFILE, {}};
    const auto& reader = reader_;
    std::unique_lock lock(reader->mutex);
    reader->process = process;
    reader->file = std::move(file);
    reader->limit = limit;
    reader->answer.reset();
    reader->asked = Clock::now();
    lock.unlock();
    reader->changed.notify_all();
    lock.lock();
    const auto patience = is_paused(process, reader->asked) ? Clock::duration::zero() : patience_;
    if (reader->changed.wait_for(lock, patience, [&] { return reader->answer.has_value(); }))
        return std::move(*reader->answer);
    reader->is_over = true;
    lock.unlock();
    reader->user = user();
    waiting_.push_back(std::exchange(reader_, nullptr));
    pause(process, Clock::now());
    return {EAGAIN, {}};
}

bool CommandLines::is_paused(const TaskId& process, Clock::time_point now) const {
    const auto found = pauses_.find(process);
    return found != pauses_.end() && now < found->second.until;
}

/// Longer each time, and forgotten when it was good for twice as long.
void CommandLines::pause(const TaskId& process, Clock::time_point now) {
    if (is_paused(process, now)) return;
    if (pauses_.size() >= most_pauses)
        std::erase_if(pauses_, [&](const auto& one) { return now >= one.second.until + one.second.length; });
    if (pauses_.size() >= most_pauses) pauses_.clear();
    auto& pause = pauses_[process];
    const bool is_again = pause.length > Clock::duration::zero() && now < pause.until + 2 * pause.length;
    pause.length = is_again ? std::min<Clock::duration>(pause.length * 2, longest_pause) : first_pause;
    pause.until = now + pause.length;
}

int CommandLines::fd() const { return arrivals_->event.get(); }

CommandLines::Late CommandLines::take_late() {
    std::uint64_t count = 0;
    std::ignore = ::read(arrivals_->event.get(), &count, sizeof count);
    std::unique_lock lock(arrivals_->mutex);
    const auto arrived = std::exchange(arrivals_->readers, {});
    lock.unlock();
    Late late;
    if (arrived.empty()) return late;
    late_.clear();
    const auto now = Clock::now();
    std::erase_if(waiting_, [&](const auto& reader) {
        if (std::ranges::find(arrived, reader.get()) == arrived.end()) return false;
        const std::lock_guard its(reader->mutex);
        late.processes.push_back(reader->process);
        late_[reader->process] = {std::move(*reader->answer), now};
        return true;
    });
    late.has_room = std::exchange(was_full_, false);
    return late;
}

std::vector<TaskId> CommandLines::silent(Clock::time_point now) const {
    std::vector<TaskId> processes;
    for (const auto& reader : waiting_)
        if (now - reader->asked >= long_silence) processes.push_back(reader->process);
    std::ranges::sort(processes);
    return processes;
}

std::vector<TaskId> CommandLines::take_silent(Clock::time_point now) {
    std::vector<TaskId> processes;
    for (const auto& reader : waiting_)
        if (now - reader->asked >= long_silence && !std::exchange(reader->is_told, true))
            processes.push_back(reader->process);
    return processes;
}

std::optional<std::vector<uid_t>> CommandLines::refused(Clock::time_point now) const {
    std::map<uid_t, std::size_t> silent;
    std::size_t all = 0;
    for (const auto& reader : waiting_) {
        if (now - reader->asked < long_silence) continue; // a busy machine is late, too
        ++all;
        ++silent[reader->user];
    }
    if (all >= most_waiting) return std::nullopt;
    std::vector<uid_t> users;
    for (const auto& [user, count] : silent)
        if (count >= most_waiting_for_one) users.push_back(user);
    return users;
}

} // namespace affinityd::inventory
