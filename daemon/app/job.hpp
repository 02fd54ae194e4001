// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>

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

} // namespace affinityd::app
