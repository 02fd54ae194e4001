// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/job.hpp"
#include "app/log.hpp"
#include "enforcer/executor.hpp"
#include "inventory/fact_sources.hpp"
#include "state/journal.hpp"
#include "status/changes.hpp"

#include <functional>
#include <optional>
#include <vector>

namespace affinityd::app {

/// Restores the originals of tasks and queues, in slices: after a release, and at the end.
class Restorer final : public Job {
  public:
    enum class Choice {
        restore,
        keep, ///< it stays as it is: on_stop: keep
        skip, ///< it stays under its policy
    };
    /// What is to become of a record's subject.
    using Choose = std::function<Choice(const state::Entry& entry)>;
    /// Called at the end with what was put back, and what could not be.
    using Done = std::function<void(status::Changes changes)>;

    /// References must outlive it.
    struct Parts {
        state::Journal& journal;
        enforcer::Executor& executor;
        inventory::FactSources& sources;
        Log& log;
    };
    /// `with_kept`: also of what was kept before.
    Restorer(const Parts& parts, CpuSet online, Choose choose, Done done, bool with_kept = false)
        : parts_(parts), online_(std::move(online)), choose_(std::move(choose)), done_(std::move(done)),
          with_kept_(with_kept) {}

    bool step(const OutOfTime& out_of_time) override;

  private:
    void treat(const state::Entry& entry);
    void resume(const state::Entry& entry);
    void count(const state::Entry& entry, const enforcer::Applied& applied);
    Parts parts_;
    CpuSet online_;
    Choose choose_;
    Done done_;
    state::Journal::Cursor cursor_{}, kept_cursor_{};
    status::Changes changes_;
    std::size_t units_ = 0; ///< that are left to app::Units
    bool is_begun_ = false;
    bool with_kept_ = false; ///< and some of it is still to be taken up
};

} // namespace affinityd::app
