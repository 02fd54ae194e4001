// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/undo.hpp"
#include "app/work.hpp"
#include "inventory/descriptors.hpp"
#include "inventory/facts.hpp"
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

/// At the end: tasks that inherited one of our masks, and that no event has announced yet, get what their
/// creators got back, also if these have ended since. Children of such tasks may have inherited it too, so
/// the processes are gone through until none is left.
class OrphanRestorer final : public Job {
  public:
    /// True if a policy's masks stay when the daemon stops.
    using Keeps = std::function<bool(const std::string& policy)>;
    /// References must outlive it.
    struct Parts {
        const host::Root& root;
        enforcer::Executor& executor;
        Undo& undo;
        Log& log;
    };
    OrphanRestorer(const Parts& parts, CpuSet online, Keeps keeps)
        : parts_(parts), online_(std::move(online)), keeps_(std::move(keeps)) {}

    bool step(const OutOfTime& out_of_time) override;

  private:
    [[nodiscard]] bool begin_round();
    void begin_process(int pid);
    [[nodiscard]] bool finish_process(const OutOfTime& out_of_time);
    void restore(const inventory::Thread& thread);

    Parts parts_;
    CpuSet online_;
    Keeps keeps_;
    std::optional<inventory::PidStream> pids_;   ///< of the round
    std::optional<inventory::ProcessScan> scan_; ///< of the process that is looked at now
    unsigned rounds_ = 0;
    std::size_t count_ = 0;     ///< restored in this round
    unsigned empty_rounds_ = 0; ///< in a row: a child may come into the list after the first of them
};

} // namespace affinityd::app
