// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
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

/// Jobs in the order in which they are done.
class Jobs {
  public:
    /// Called whenever there is work and there was none.
    explicit Jobs(std::function<void()> on_work) : on_work_(std::move(on_work)) {}

    void add(std::unique_ptr<Job> job);
    /// Works on the first, then on the next. True: there is none left.
    bool step(const OutOfTime& out_of_time);
    void clear() { jobs_.clear(); }
    [[nodiscard]] bool empty() const { return jobs_.empty(); }
    [[nodiscard]] std::size_t size() const { return jobs_.size(); }

  private:
    std::function<void()> on_work_;
    std::deque<std::unique_ptr<Job>> jobs_;
};

/// Stages one after the other, each in as many slices as it needs.
class Sequence final : public Job {
  public:
    /// Works until `out_of_time` says so; true: the stage is over.
    using Stage = std::function<bool(const OutOfTime& out_of_time)>;

    /// A stage that is done in one go.
    Sequence& then(std::function<void()> stage) {
        return until([stage = std::move(stage)](const OutOfTime&) {
            stage();
            return true;
        });
    }
    /// A stage that is a job of its own, made when its turn comes.
    Sequence& then_do(std::function<std::unique_ptr<Job>()> make) {
        return until(
            [make = std::move(make), job = std::shared_ptr<Job>()](const OutOfTime& out_of_time) mutable {
                if (!job) job = make();
                if (!job->step(out_of_time)) return false;
                job.reset();
                return true;
            });
    }
    Sequence& until(Stage stage) {
        stages_.push_back(std::move(stage));
        return *this;
    }

    bool step(const OutOfTime& out_of_time) override {
        while (next_ < stages_.size()) {
            if (!stages_[next_](out_of_time)) return false;
            ++next_;
            if (next_ < stages_.size() && out_of_time()) return false;
        }
        return true;
    }

  private:
    std::vector<Stage> stages_;
    std::size_t next_ = 0;
};

/// What is to be done in slices of the loop, and in which order: what events have begun, then jobs and the
/// pass in turn, so that neither questions nor passes keep the other from its end.
class Work {
  public:
    /// now: there is work for slices; soon: a pass is wanted, a moment later, as requests come in bursts;
    /// later: a pass is wanted within two seconds, for what others' programs can ask for again and again.
    enum class Urgency { now, soon, later };

    /// Called when work waits.
    void on_work(std::function<void(Urgency)> waits) { waits_ = std::move(waits); }
    void want(Urgency urgency) { waits_(urgency); }

    /// A job before all others: queues of an interface that has changed.
    void add_urgent(std::unique_ptr<Job> job) { urgent_.add(std::move(job)); }
    [[nodiscard]] bool is_urgent_full() const { return urgent_.size() >= most_urgent; }
    void add(std::unique_ptr<Job> job) { jobs_.add(std::move(job)); }
    /// Begins a pass; none may be under way.
    void begin_pass(std::unique_ptr<Job> pass);
    [[nodiscard]] bool passing() const { return pass_ != nullptr; }
    [[nodiscard]] std::uint64_t passes() const { return passes_; } ///< begun since the start

    /// The daemon ends: everything else is dropped for this.
    void begin_end(std::unique_ptr<Job> job);
    /// Works until `out_of_time` says so. True: there is nothing left to do.
    bool step(const OutOfTime& out_of_time);

  private:
    static constexpr std::size_t most_urgent = 8;
    bool step_pass(const OutOfTime& out_of_time);
    std::function<void(Urgency)> waits_ = [](Urgency) {};
    Jobs urgent_{[this] { want(Urgency::now); }};
    Jobs jobs_{[this] { want(Urgency::now); }};
    std::unique_ptr<Job> pass_;
    std::uint64_t passes_ = 0;
    bool pass_is_next_ = true;
};

} // namespace affinityd::app
