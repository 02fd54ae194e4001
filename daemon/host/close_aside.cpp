// SPDX-License-Identifier: Apache-2.0
#include "host/close_aside.hpp"

#include "host/blocked_signals.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#include <unistd.h>

namespace affinityd::host {

namespace {

using Clock = std::chrono::steady_clock;

/// So long descriptors wait for a thread before there is another one: twice as long as a thread waits for a
/// connection that lingers.
constexpr std::chrono::milliseconds patience{4};

} // namespace

struct CloseAside::Work {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<int> numbers; ///< of descriptors that no thread has taken
    int waiting = 0;         ///< those, and the ones that are being closed
    unsigned threads = 0, idle = 0;
    Clock::time_point last_taken{}, last_begun{}; ///< a descriptor, and a thread
    bool is_over = false;

    /// What waits is not taken in time.
    [[nodiscard]] bool needs_thread() const {
        const auto now = Clock::now();
        return threads == 0 || (idle == 0 && now - std::max(last_taken, last_begun) > patience);
    }
};

CloseAside::CloseAside() : work_(std::make_shared<Work>()) {}

CloseAside::~CloseAside() {
    const std::lock_guard lock(work_->mutex);
    work_->is_over = true;
    work_->changed.notify_all();
}

int CloseAside::waiting() const {
    const std::lock_guard lock(work_->mutex);
    return work_->waiting;
}

/// What a thread does.
void CloseAside::close_all(const std::shared_ptr<Work>& work) {
    std::unique_lock lock(work->mutex);
    const auto has_news = [&] { return !work->numbers.empty() || work->is_over; };
    for (;;) {
        ++work->idle;
        work->changed.wait_for(lock, std::chrono::seconds(1), has_news);
        --work->idle;
        if (work->numbers.empty()) break;
        const int number = work->numbers.front();
        work->numbers.pop_front();
        work->last_taken = Clock::now();
        lock.unlock();
        ::close(number);
        lock.lock();
        --work->waiting;
    }
    --work->threads;
}

void CloseAside::close(Fd fd) {
    const BlockedSignals blocked;
    std::unique_lock lock(work_->mutex);
    work_->numbers.push_back(fd.release());
    ++work_->waiting;
    work_->changed.notify_one();
    if (!work_->needs_thread()) return;
    try {
        std::thread(close_all, work_).detach();
        ++work_->threads;
        work_->last_begun = Clock::now();
    } catch (const std::system_error&) {
        return; // it waits until one can be had: the next close() tries again
    }
}

} // namespace affinityd::host
