// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/load.hpp"
#include "app/log.hpp"
#include "app/place_thread.hpp"
#include "app/undo.hpp"
#include "app/work.hpp"
#include "enforcer/executor.hpp"
#include "machine/reader.hpp"
#include "planner/plan.hpp"
#include "status/status.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace affinityd::app {

/// The way of queues: interrupts, steering maps and flow tables. Each is read
/// alone, compared with its target, written, and noted as it was granted.
class Queues {
  public:
    /// References must outlive it.
    Queues(Shared& shared, Undo& undo, Placed& placed) : shared_(shared), undo_(undo), placed_(placed) {}

    /// Reads the target's subject, and sets it if it is not as it should be.
    void put_right(const planner::QueueTarget& target);
    /// Puts an interrupt right whose mask is another one than when it was last read or written; cheap where
    /// it is not. True: it was put right.
    bool glance(const planner::QueueTarget& target);
    /// Restores the original of a subject that no policy wants any more.
    void restore_unwanted(const planner::Subject& subject);
    /// The change that restore_unwanted() would make now, if any.
    [[nodiscard]] std::optional<planner::Action> plan_restore(const planner::Subject& subject);
    /// A round over all of them begins.
    void begin_round() { placed_.begin_queues(); }
    /// It has ended: forgets what was read of subjects that are no targets any more.
    void end_round();

    /// The change that put_right() would make now, if any. Nothing is changed.
    [[nodiscard]] std::optional<planner::Action> plan(const planner::QueueTarget& target);
    /// A target with what its subject was set to when it was last read or written.
    [[nodiscard]] status::QueueStatus status(const planner::QueueTarget& target) const;
    /// The same with what it is set to now. It is not remembered: glance() still sees that it has changed.
    [[nodiscard]] status::QueueStatus status_now(const planner::QueueTarget& target) const;
    [[nodiscard]] Shared& shared() const { return shared_; }
    /// True if interrupts are under policy, and are set.
    [[nodiscard]] bool guards_interrupts() const;
    /// The subjects in the undo journal that no policy wants now, or only released ones; with `nic`, only
    /// those of that interface.
    [[nodiscard]] std::vector<planner::Subject> unwanted(const std::optional<std::string>& nic = {});

    /// True if a policy wants something of the interface, which may have got this name just now. Containers'
    /// interfaces come and go all the time, and say nothing of its interrupts.
    [[nodiscard]] bool concerns(const std::string& nic) const;
    /// Interfaces that were read alone since the start: a reading of the whole machine meanwhile is too old.
    [[nodiscard]] std::uint64_t links_read() const { return links_read_; }
    void count_read_link() { ++links_read_; }

  private:
    [[nodiscard]] std::optional<planner::Setting> read(const planner::Subject& subject);
    [[nodiscard]] const planner::QueueTarget& decider(const planner::QueueTarget& target) const;
    [[nodiscard]] bool is_wanted(const planner::QueueTarget& target) const;
    void add_state(const planner::QueueTarget& target, status::QueueStatus& into) const;
    void count_unchanged(const planner::QueueTarget& target, const planner::Setting& present);
    [[nodiscard]] std::optional<planner::Action> plan(const planner::QueueTarget& target,
                                                      const planner::Setting& present);
    void apply(const planner::Action& action);

    Shared& shared_;
    Undo& undo_;
    Placed& placed_;
    planner::Assignments none_; ///< queues have no slots
    std::unordered_map<planner::Subject, planner::Setting> present_;
    std::uint64_t links_read_ = 0;
};

/// One round over all queues or those of one interface and of what is under it, in slices.
class QueueRound final : public Job {
  public:
    explicit QueueRound(Queues& queues, std::optional<std::string> nic = {})
        : queues_(queues), nic_(std::move(nic)), world_(queues.shared().current.world),
          version_(world_->version()) {}
    bool step(const OutOfTime& out_of_time) override;

  private:
    [[nodiscard]] bool is_meant(const std::string& nic) const;
    Queues& queues_;
    std::optional<std::string> nic_;   ///< no value: all
    std::vector<std::string> under_{}; ///< a bond's ports are placed by which of them is in use
    std::shared_ptr<World> world_;     ///< a reload begins the round anew,
    std::uint64_t version_;            ///< and so do other placements
    std::size_t next_ = 0;             ///< target
    bool is_begun_ = false;
    std::optional<std::vector<planner::Subject>> unwanted_;
};

/// Reads one interface again, alone, and puts its queues right.
class NicRound final : public Job {
  public:
    NicRound(Queues& queues, std::string nic) : queues_(queues), nic_(std::move(nic)) {}
    bool step(const OutOfTime& out_of_time) override;

  private:
    Queues& queues_;
    std::string nic_;
    std::optional<machine::InterfaceReader> reader_;
    std::optional<QueueRound> round_; ///< once the interface was read
};

/// One look at the masks of the interrupts under policy, and at nothing else: no kernel event tells that
/// another program has written one. It costs a file per interrupt, so it may be taken every few seconds. What
/// had been changed is right again then, and a pass is wanted: the writer may be a program that only a pass
/// over all processes finds, such as irqbalance.
class InterruptGlance final : public Job {
  public:
    explicit InterruptGlance(Queues& queues)
        : queues_(queues), world_(queues.shared().current.world), version_(world_->version()) {}
    bool step(const OutOfTime& out_of_time) override;

  private:
    Queues& queues_;
    std::shared_ptr<World> world_; ///< with other policies or placements than these,
    std::uint64_t version_;        ///< a round over all queues is on its way
    std::size_t next_ = 0;         ///< target
    bool has_found_ = false;
};

} // namespace affinityd::app
