// SPDX-License-Identifier: Apache-2.0
#include "enforcer/enforcer.hpp"

namespace affinityd::enforcer {

namespace {

class RecordingEnforcer final : public Enforcer {
  public:
    Applied apply(const planner::Action& action) override { return {Outcome::done, action.to, 0}; }
    Result<std::optional<machine::Setting>> present(const machine::Subject&) override { return std::nullopt; }
    void move_memory(MemoryMove) override {}
    std::vector<MemoryMoved> take_moved() override { return {}; }
    [[nodiscard]] bool acts() const override { return false; }
};

} // namespace

std::unique_ptr<Enforcer> make_recording_enforcer() { return std::make_unique<RecordingEnforcer>(); }

} // namespace affinityd::enforcer
