// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/job.hpp"
#include "app/sequence.hpp"

#include <cstdint>
#include <functional>
#include <memory>

namespace affinityd::app {

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
