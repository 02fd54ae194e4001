// SPDX-License-Identifier: Apache-2.0
#include "host/patient_call.hpp"

#include "base/clock.hpp"
#include "host/avoided.hpp"
#include "host/blocked_signals.hpp"

#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <fstream>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

namespace affinityd::host {

namespace {

using Clock = std::chrono::steady_clock;
using detail::PatientCall;

constexpr int most_left_behind = 64;
constexpr std::chrono::milliseconds first_glance{5}, between_glances{10};
constexpr std::chrono::seconds longest_of_all{5};

std::chrono::milliseconds since(Clock::time_point begun) {
    return std::chrono::ceil<std::chrono::milliseconds>(Clock::now() - begun);
}

std::vector<Avoidable> avoidables(const InUse& used) {
    std::vector<Avoidable> all{{Avoid::process, static_cast<std::uint64_t>(used.pid.load())},
                               {Avoid::inode, used.inode},
                               {Avoid::cookie, used.cookie}};
    std::erase_if(all, [](const Avoidable& one) { return one.number == 0; });
    return all;
}

/// Of what is waited for in one call: asked at once when it is another process's, as that may end meanwhile.
class Payer {
  public:
    explicit Payer(const InUse& used) : used_(used) {}
    void note() {
        if (const int pid = used_.pid; pid != std::exchange(pid_, pid)) payer_ = payer_of(pid);
    }
    void charge(std::chrono::milliseconds time) {
        note();
        if (payer_) charge_wait(*payer_, time);
    }
    [[nodiscard]] std::optional<uid_t> get() const { return payer_; }

  private:
    const InUse& used_;
    int pid_ = 0;
    std::optional<uid_t> payer_;
};

std::atomic<int> left_behind = 0; // calls that were left to themselves and have not come back

/// A thread that runs one call after another, of one caller.
class CallThread {
  public:
    /// Null: there is no thread to be had.
    static std::shared_ptr<CallThread> start() {
        auto thread = std::make_shared<CallThread>();
        const BlockedSignals blocked;
        try {
            std::thread([thread] { thread->work(); }).detach();
        } catch (const std::system_error&) {
            return nullptr;
        }
        return thread;
    }

    /// False: it has not come back. The thread is of no use then.
    bool run(const std::shared_ptr<PatientCall>& call) {
        std::unique_lock lock(mutex_);
        call_ = call;
        changed_.notify_all();
        std::chrono::milliseconds waited{0}; // seen to wait itself, without a break
        Payer payer(call->in_use);
        const auto end = Clock::now() + longest_of_all;
        for (auto rest = first_glance; waited < longest_call && Clock::now() < end; rest = between_glances) {
            const auto glanced = Clock::now();
            if (changed_.wait_for(lock, rest, [this] { return call_ == nullptr; })) {
                if (waited.count() > 0) payer.charge(since(glanced));
                return true;
            }
            if (wants_cpu()) {
                waited = {};
                payer.note();
            } else {
                waited += rest;
                payer.charge(since(glanced));
            }
        }
        is_over_ = is_stuck_ = true;
        ++left_behind;
        call->in_use.is_given_up = true;
        payer.note();
        avoided_ = {avoidables(call->in_use), payer.get()};
        note_stuck(avoided_);
        return false;
    }
    void end() {
        const std::lock_guard lock(mutex_);
        is_over_ = true;
        changed_.notify_all();
    }

  private:
    /// It would go on if it had a CPU: on a busy machine it may take long to get one.
    [[nodiscard]] bool wants_cpu() const {
        const int tid = tid_;
        if (tid == 0) return true; // it has not begun
        std::ifstream file("/proc/self/task/" + std::to_string(tid) + "/stat");
        std::string line;
        std::getline(file, line);
        const auto end = line.rfind(") ");
        return end == std::string::npos || line.compare(end + 2, 1, "R") == 0;
    }
    void work() {
        tid_ = ::gettid();
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return call_ != nullptr || is_over_; });
            if (call_ == nullptr) return;
            auto call = call_;
            lock.unlock();
            const auto before = thread_time();
            call->run();
            call->used = thread_time() - before;
            lock.lock();
            if (is_stuck_) { // the caller is gone: what the call has is let go here, which may wait, too
                lock.unlock();
                call_.reset();
                call.reset();
                note_back(avoided_);
                --left_behind;
                return;
            }
            call_ = nullptr;
            changed_.notify_all();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::shared_ptr<PatientCall> call_; ///< null: nothing is to be done
    bool is_over_ = false, is_stuck_ = false;
    Stuck avoided_; ///< what it uses that is stuck
    std::atomic<int> tid_ = 0;
};

/// The calling thread's.
struct OwnCallThread {
    OwnCallThread() = default;
    OwnCallThread(const OwnCallThread&) = delete;
    OwnCallThread& operator=(const OwnCallThread&) = delete;
    ~OwnCallThread() {
        if (thread) thread->end();
    }
    std::shared_ptr<CallThread> thread;
};

thread_local std::chrono::nanoseconds used_by_calls{0};

} // namespace

std::chrono::nanoseconds thread_time_with_calls() { return thread_time() + used_by_calls; }

int to_errno(Unanswered why) { return why == Unanswered::stuck ? EBUSY : EAGAIN; }

std::optional<Unanswered> detail::run_patiently(const std::shared_ptr<PatientCall>& call) {
    thread_local OwnCallThread own;
    if (own.thread == nullptr && left_behind < most_left_behind) own.thread = CallThread::start();
    if (own.thread == nullptr) return Unanswered::not_begun;
    if (own.thread->run(call)) {
        used_by_calls += call->used;
        return std::nullopt;
    }
    own.thread.reset();
    return Unanswered::stuck;
}

} // namespace affinityd::host
