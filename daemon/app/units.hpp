// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "app/job.hpp"
#include "app/log.hpp"
#include "app/releases.hpp"
#include "app/world.hpp"
#include "state/journal.hpp"
#include "status/status.hpp"
namespace affinityd::host {
class Root;
}
namespace affinityd::enforcer {
class UnitProperties {};
} // namespace affinityd::enforcer
namespace affinityd::app {
class Units {
  public:
    struct Parts {
        const host::Root& root;
        const Current& current;
        state::Journal& journal;
        enforcer::UnitProperties& properties;
        const Releases& releases;
        std::function<void()> changed;
        Log& log;
    };
    explicit Units(Parts parts) : parts_(parts) {}
    void observe(const TaskId&, const std::string&, std::size_t) {}
    void forget(const TaskId&) {}
    void begin_pass() {}
    bool step(const OutOfTime&) { return true; }
    void begin_stop() {}
    bool is_busy() const { return false; }
    void add_status(status::Overview&) const {}
    void explain(const TaskId&, status::ProcessExplanation&) const {}

  private:
    Parts parts_;
};
} // namespace affinityd::app
