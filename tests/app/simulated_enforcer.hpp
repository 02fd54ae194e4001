// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "enforcer/enforcer.hpp"
#include "simulated_machine.hpp"

#include <cerrno>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace affinityd::app::test {

/// Acts on the simulated machine: what is applied is in its files afterwards, as the kernel would have it.
class SimulatedEnforcer final : public enforcer::Enforcer {
  public:
    explicit SimulatedEnforcer(const Machine& machine) : machine_(machine) {}

    enforcer::Applied apply(const planner::Action& action) override;
    Result<std::optional<machine::Setting>> present(const planner::Subject& subject) override;
    [[nodiscard]] std::optional<CpuSet> glance(unsigned irq) const override;
    [[nodiscard]] bool may_return(const planner::Subject& subject) const override;
    void move_memory(enforcer::MemoryMove move) override { moves.push_back(std::move(move)); }
    std::vector<enforcer::MemoryMoved> take_moved() override { return std::exchange(moved, {}); }
    [[nodiscard]] bool acts() const override { return true; }
    [[nodiscard]] std::uint64_t ticks() const override { return now; }

    std::vector<enforcer::MemoryMove> moves;  ///< asked for
    std::vector<enforcer::MemoryMoved> moved; ///< what take_moved() shall tell next
    std::unordered_map<planner::Subject, enforcer::Outcome> refuse;
    /// The same with what the kernel would say of an interrupt: an errno value.
    std::unordered_map<planner::Subject, int> refuse_with;
    /// Numbers of queues, by interface: what netlink says on a real machine.
    CpuSet full;                        ///< CPUs without an interrupt vector left
    std::vector<planner::Subject> done; ///< in the order in which they were applied
    unsigned applied = 0;
    std::uint64_t now = 0;                                   ///< clock ticks since boot; 0: not known
    unsigned read = 0;                                       ///< calls of present()
    std::chrono::milliseconds takes{0};                      ///< each change
    std::function<void()> before_apply;                      ///< may be empty
    std::function<void(const planner::Action&)> after_apply; ///< of what took effect; may be empty
    std::unordered_set<planner::Subject> unreadable;         ///< present() fails for these
    int unreadable_with = EIO;                               ///< an errno value

  private:
    using Present = std::optional<machine::Setting>;
    Present read_now(const planner::Subject& subject) const;
    [[nodiscard]] Present get(const planner::TaskMask& task) const;
    [[nodiscard]] Present get(const planner::IrqMask& irq) const;
    [[nodiscard]] Present get(const planner::SteeringMask& steering) const;
    [[nodiscard]] Present get(const planner::FlowTable& table) const;
    [[nodiscard]] Present get(const planner::ListenerCpu&) const {
        return std::nullopt;
    } // sockets are real ones
    [[nodiscard]] Present get(const planner::UnitCpuset&) const { return std::nullopt; } // systemd's

    [[nodiscard]] std::string file_of(const planner::SteeringMask& steering) const;
    [[nodiscard]] std::string file_of(const planner::FlowTable& table) const;
    void write(const planner::TaskMask& task, const machine::Setting& to) const;
    void write(const planner::IrqMask& irq, const machine::Setting& to) const;
    void write(const planner::SteeringMask& steering, const machine::Setting& to) const;
    void write(const planner::FlowTable& table, const machine::Setting& to) const;
    void write(const planner::ListenerCpu&, const machine::Setting&) const {}
    void write(const planner::UnitCpuset&, const machine::Setting&) const {}
    const Machine& machine_;
};

} // namespace affinityd::app::test
