// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/memory_follower.hpp"
#include "app/steering.hpp"
#include "app/task_observer.hpp"
#include "app/units.hpp"

#include <functional>

namespace affinityd::app {

/// Passes on what Tasks sees of processes under policy to those who follow them.
class Followers final : public TaskObserver {
  public:
    /// References must outlive it. The functions are those of TaskObserver.
    struct Parts {
        const Current& current;
        Units& units;
        Steering& steering;
        enforcer::Enforcer& enforcer;
        Log& log;
        std::function<void(const inventory::ProcessScan&)> named;
        std::function<void(const KnownProcess&)> matched;
        std::function<void()> came_or_went;
        std::function<void()> missed;
        std::function<void()> work_left;
    };
    explicit Followers(Parts parts)
        : parts_(std::move(parts)), memory_(parts_.current, parts_.enforcer, parts_.log) {}

    void named(const inventory::ProcessScan& process) override { parts_.named(process); }
    void matched(const KnownProcess& process, const inventory::ProcessFacts& facts) override;
    void placed(const KnownProcess& process) override;
    void left(const KnownProcess& process) override;
    void came_or_went() override { parts_.came_or_went(); }
    void missed() override { parts_.missed(); }
    void work_left() override { parts_.work_left(); }
    [[nodiscard]] MemoryFollower& memory() { return memory_; }

  private:
    Parts parts_;
    MemoryFollower memory_;
};

} // namespace affinityd::app
