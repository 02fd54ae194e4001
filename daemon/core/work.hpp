// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <coroutine>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace affinityd::core {

/// Says when the present slice is over: work is left then, and taken up again in the next one.
using OutOfTime = std::function<bool()>;

/// The same for one small part.
[[nodiscard]] inline bool a_part() { return true; }

/// Says so once in each millisecond.
[[nodiscard]] inline OutOfTime each_millisecond() {
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds slice{1};
    return [until = Clock::now() + slice]() mutable {
        const auto now = Clock::now();
        const bool is_over = now >= until;
        if (is_over) until = now + slice;
        return is_over;
    };
}

/// Work that is too long for one turn of the loop.
class Job {
  public:
    virtual ~Job() = default;
    /// Works until `out_of_time` says so, but does at least one small part. True: finished.
    virtual bool step(const OutOfTime& out_of_time) = 0;
};

/// `co_yield pause` lets the slice of a job end, `co_yield end_of_slice` ends it. The value is true if the
/// slice has ended: other work had its turn.
struct Pause {
    bool ends_slice = false;
};
inline constexpr Pause pause{}, end_of_slice{true};

/// A job that is written in one piece, as a function with pauses. Arguments are copied or moved into the job,
/// and end with it; references must outlive it.
class Slices final : public Job {
  public:
    struct promise_type {
        bool ends_slice = false, is_new_slice = false;
        Slices get_return_object() {
            return Slices(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        struct Yield : std::suspend_always {
            const promise_type& promise;
            bool await_resume() const noexcept { return promise.is_new_slice; }
        };
        Yield yield_value(Pause at) noexcept {
            ends_slice = at.ends_slice;
            return {{}, *this};
        }
        void return_void() noexcept {}
        void unhandled_exception() { throw; }
    };
    explicit Slices(std::coroutine_handle<promise_type> work) : work_(work) {}
    Slices(Slices&& other) noexcept : work_(std::exchange(other.work_, {})) {}
    Slices& operator=(Slices&&) = delete;
    ~Slices() override {
        if (work_) work_.destroy();
    }
    bool step(const OutOfTime& out_of_time) override {
        for (bool is_new = true;; is_new = false)
            if (part(is_new) || work_.promise().ends_slice || out_of_time()) return work_.done();
    }
    /// Goes to the next pause, for a job that is part of another. `is_new_slice`: other work had its turn.
    /// True: finished.
    bool part(bool is_new_slice) {
        work_.promise().is_new_slice = is_new_slice;
        work_.resume();
        return work_.done();
    }

  private:
    std::coroutine_handle<promise_type> work_;
};

/// The work of the loop in slices, in this order: first what is urgent, then jobs and the pass
/// in turn, so that neither questions nor passes keep the other from its end.
class Work {
  public:
    /// now: there is work for slices; soon: a pass is wanted, a moment later, as requests come in bursts;
    /// later: a pass is wanted within two seconds, for what others' programs can ask for again and again.
    enum class Urgency { now, soon, later };

    /// Called when work waits.
    void on_work(std::function<void(Urgency)> waits) { waits_ = std::move(waits); }
    void want(Urgency urgency) { waits_(urgency); }

    /// A job before all others: queues of an interface that has changed.
    void add_urgent(Slices job) { add_to(urgent_, std::make_unique<Slices>(std::move(job))); }
    [[nodiscard]] bool is_urgent_full() const { return urgent_.size() >= most_urgent; }
    void add(std::unique_ptr<Job> job) { add_to(jobs_, std::move(job)); }
    void add(Slices job) { add(std::make_unique<Slices>(std::move(job))); }
    /// Begins a pass; none may be under way.
    void begin_pass(std::unique_ptr<Job> pass) {
        ++passes_;
        pass_ = std::move(pass);
        want(Urgency::now);
    }
    [[nodiscard]] bool passing() const { return pass_ != nullptr; }
    [[nodiscard]] std::uint64_t passes() const { return passes_; } ///< begun since the start

    /// The daemon ends: everything else is dropped for this.
    void begin_end(Slices job) {
        urgent_.clear();
        jobs_.clear();
        pass_.reset();
        add(std::move(job));
    }

    /// Works until `out_of_time` says so. True: there is nothing left to do.
    bool step(const OutOfTime& out_of_time) {
        if (!step_all(urgent_, out_of_time)) return false;
        pass_is_next_ = !pass_is_next_;
        if (!pass_is_next_) return step_all(jobs_, out_of_time) && !pass_;
        if (pass_ && !pass_->step(out_of_time)) return false;
        pass_.reset();
        return jobs_.empty();
    }

  private:
    using Jobs = std::deque<std::unique_ptr<Job>>;
    static constexpr std::size_t most_urgent = 8;
    void add_to(Jobs& jobs, std::unique_ptr<Job> job) {
        jobs.push_back(std::move(job));
        want(Urgency::now);
    }
    /// A job may add others while it works, but never takes any away.
    static bool step_all(Jobs& jobs, const OutOfTime& out_of_time) {
        while (!jobs.empty()) {
            if (!jobs.front()->step(out_of_time)) return false;
            jobs.pop_front();
            if (out_of_time()) break;
        }
        return jobs.empty();
    }
    std::function<void(Urgency)> waits_ = [](Urgency) {};
    Jobs urgent_, jobs_;
    std::unique_ptr<Job> pass_;
    std::uint64_t passes_ = 0;
    bool pass_is_next_ = true;
};

} // namespace affinityd::core
