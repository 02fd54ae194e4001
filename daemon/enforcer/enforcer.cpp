// SPDX-License-Identifier: Apache-2.0
// The meaning of what the kernel answers, and the enforcer that changes nothing.
#include "enforcer/enforcer.hpp"

#include "host/root.hpp"
#include "machine/queue_files.hpp"

#include <array>
#include <cerrno>

namespace affinityd::enforcer {

std::string_view to_string(Outcome outcome) {
    static constexpr std::array names{"done",     "narrowed",         "pending", "gone",         "immovable",
                                      "deadline", "not permitted",    "no CPU",  "vectors full", "busy",
                                      "foreign",  "not written down", "failed"};
    return names.at(static_cast<std::size_t>(outcome));
}

Outcome outcome_of(const machine::Subject& subject, int code) {
    const bool is_task = std::holds_alternative<machine::TaskMask>(subject);
    const bool is_irq = std::holds_alternative<machine::IrqMask>(subject);
    switch (code) {
    case 0:
        return Outcome::done;
    case ESRCH:
    case ENOENT:
        return Outcome::gone;
    case EPERM: // since Linux 6.12 also of a managed interrupt
        return is_irq ? Outcome::immovable : Outcome::not_permitted;
    case EACCES:
        return Outcome::not_permitted;
    case EIO: // of a managed interrupt up to Linux 6.11
        return is_irq ? Outcome::immovable : Outcome::failed;
    case EINVAL:
    case EOVERFLOW: // none of the CPUs is online or allowed, or none is one at all
        return Outcome::no_cpu;
    case ENOSPC:
        return Outcome::full;
    case EBUSY: // of a task: SCHED_DEADLINE
        return is_task ? Outcome::deadline : Outcome::busy;
    case EAGAIN:
        return Outcome::busy;
    default:
        return Outcome::failed;
    }
}

bool is_of_the_moment(Outcome outcome) { return outcome == Outcome::no_cpu || outcome == Outcome::busy; }

bool took_effect(Outcome outcome) {
    return outcome == Outcome::done || outcome == Outcome::narrowed || outcome == Outcome::pending;
}

namespace {

/// Reads as the real one, and changes nothing.
class RecordingEnforcer final : public Enforcer {
  public:
    explicit RecordingEnforcer(const host::Root& root) : root_(root) {}
    Applied apply(const planner::Action& action) override { return {Outcome::done, action.to, 0}; }
    Result<std::optional<machine::Setting>> present(const machine::Subject& subject) override {
        return std::visit(
            [&](const auto& queue) -> Result<std::optional<machine::Setting>> {
                if constexpr (requires { machine::read_setting(root_, queue); })
                    return machine::read_setting(root_, queue);
                return std::nullopt;
            },
            subject);
    }
    [[nodiscard]] bool acts() const override { return false; }

  private:
    const host::Root& root_;
};

} // namespace

std::unique_ptr<Enforcer> make_recording_enforcer(const host::Root& root) {
    return std::make_unique<RecordingEnforcer>(root);
}

} // namespace affinityd::enforcer
