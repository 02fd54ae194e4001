// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/blocked_signals.hpp"
#include "host/fd.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

namespace affinityd::inventory {

/// Reads on a thread of its own what the event loop must not wait for. One reading is made at a time; the
/// next one begins no earlier than twenty times its CPU time after it began, and no later than `longest_rest`
/// after it ended, if asked for. The thread is started by the first ask(). The destructor waits for the
/// system call that the thread is in.
template <class Asked, class Found>
class ReadingThread {
  public:
    using Read = std::function<Found(const Asked&, const std::stop_token&)>;
    /// `read` is called by the thread only. `longest_rest`: at least 20 ms.
    ReadingThread(Read read, std::chrono::milliseconds longest_rest)
        : read_(std::move(read)), longest_rest_(longest_rest) {}
    ReadingThread(const ReadingThread&) = delete;
    ReadingThread& operator=(const ReadingThread&) = delete;

    /// This is to be read, as soon as the pause is over; what is asked for meanwhile replaces it. False: no
    /// thread is to be had.
    bool ask(Asked asked) {
        {
            const std::lock_guard lock(mutex_);
            asked_ = std::move(asked);
        }
        changed_.notify_all();
        if (thread_.joinable()) return true;
        const host::BlockedSignals blocked;
        try {
            thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
        } catch (const std::system_error&) { // the next one tries again
            return false;
        }
        return true;
    }
    /// Readable when something was found; -1 if the kernel gave no descriptor.
    [[nodiscard]] int fd() const { return arrived_.get(); }
    /// It, once; no value: there is nothing new.
    [[nodiscard]] std::optional<Found> take() {
        std::uint64_t count = 0;
        std::ignore = ::read(arrived_.get(), &count, sizeof count);
        const std::lock_guard lock(mutex_);
        return std::exchange(found_, std::nullopt);
    }

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds shortest_rest{20};
    static constexpr int per_reading = 20; // a twentieth of a CPU

    /// CPU time of the calling thread.
    static std::chrono::nanoseconds thread_time() {
        timespec time{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
        return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
    }

    void work(const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        while (changed_.wait(lock, stop, [this] { return asked_.has_value(); }) && !stop.stop_requested()) {
            if (Clock::now() < next_) {
                changed_.wait_until(lock, stop, next_, [] { return false; });
                continue;
            }
            const auto asked = *std::exchange(asked_, std::nullopt);
            lock.unlock();
            const auto begun = Clock::now();
            const auto used_before = thread_time();
            auto found = read_(asked, stop);
            const auto used = thread_time() - used_before;
            lock.lock();
            const auto now = Clock::now(); // what was rested while it read counts
            next_ = std::clamp<Clock::time_point>(begun + per_reading * used, now + shortest_rest,
                                                  now + longest_rest_);
            found_ = std::move(found);
            const std::uint64_t one = 1;
            std::ignore = ::write(arrived_.get(), &one, sizeof one); // a counter that is full is readable
        }
    }

    Read read_;
    std::chrono::milliseconds longest_rest_;
    host::Fd arrived_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    std::mutex mutex_;
    std::condition_variable_any changed_;
    // Under the mutex:
    std::optional<Asked> asked_;
    std::optional<Found> found_;
    Clock::time_point next_{}; ///< nothing is read before that
    std::jthread thread_;      ///< last, so that it ends before what it uses
};

} // namespace affinityd::inventory
