// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace affinityd::app {

/// Says when the present slice is over: work is left then, and taken up again in the next one.
using OutOfTime = std::function<bool()>;

/// Work that is too long for one turn of the loop.
class Job {
  public:
    virtual ~Job() = default;
    /// Works until `out_of_time` says so, but does at least one small part. True: finished.
    virtual bool step(const OutOfTime& out_of_time) = 0;
};

/// Stages one after the other, each in as many slices as it needs.
class Sequence final : public Job {
  public:
    /// Works until `out_of_time` says so; true: the stage is over.
    using Stage = std::function<bool(const OutOfTime& out_of_time)>;
    Sequence& until(Stage stage) {
        stages_.push_back(std::move(stage));
        return *this;
    }
    /// A stage that is done in one go.
    Sequence& then(std::function<void()> stage) {
        return until([stage = std::move(stage)](const OutOfTime&) {
            stage();
            return true;
        });
    }
    /// A stage that is a job of its own, made when its turn comes.
    Sequence& then_do(std::function<std::unique_ptr<Job>()> make) {
        return until([make = std::move(make), job = std::shared_ptr<Job>()](const OutOfTime& out) mutable {
            if (!job) job = make();
            return job->step(out);
        });
    }

    bool step(const OutOfTime& out_of_time) override {
        while (!stages_.empty()) {
            if (!stages_.front()(out_of_time)) return false;
            stages_.pop_front();
            if (!stages_.empty() && out_of_time()) return false;
        }
        return true;
    }

  private:
    std::deque<Stage> stages_;
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
    void add_urgent(std::unique_ptr<Job> job) { add_to(urgent_, std::move(job)); }
    [[nodiscard]] bool is_urgent_full() const { return urgent_.size() >= most_urgent; }
    void add(std::unique_ptr<Job> job) { add_to(jobs_, std::move(job)); }
    /// Begins a pass; none may be under way.
    void begin_pass(std::unique_ptr<Job> pass) {
        ++passes_;
        pass_ = std::move(pass);
        want(Urgency::now);
    }
    [[nodiscard]] bool passing() const { return pass_ != nullptr; }
    [[nodiscard]] std::uint64_t passes() const { return passes_; } ///< begun since the start

    /// The daemon ends: everything else is dropped for this.
    void begin_end(std::unique_ptr<Job> job) {
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

} // namespace affinityd::app
