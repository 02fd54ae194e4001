// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/job.hpp"

#include <functional>
#include <memory>
#include <vector>

namespace affinityd::app {

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

} // namespace affinityd::app
