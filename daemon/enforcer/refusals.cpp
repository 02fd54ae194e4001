// SPDX-License-Identifier: Apache-2.0
#include "enforcer/refusals.hpp"

#include <system_error>

namespace affinityd::enforcer {

bool Refusals::add(const machine::Subject& subject, Refusal refusal, bool expects_changes) {
    const bool is_irq = std::holds_alternative<machine::IrqMask>(subject);
    // A task of the kernel's that is immovable may become movable; a managed interrupt never does. But a line
    // that is being set up or taken down refuses with the same errno.
    const bool is_momentary = is_of_the_moment(refusal.outcome);
    const bool is_unclear =
        expects_changes && (is_momentary || (refusal.outcome == Outcome::immovable && is_irq));
    if (refusal.outcome == Outcome::immovable && is_irq && !is_unclear) permanent_[subject] = {};
    const auto* known = shown_.find(subject);
    const bool is_same = known != nullptr && known->outcome == refusal.outcome && known->code == refusal.code;
    refusal.since = is_same ? known->since : passes_;
    const bool was_told = is_same && known->is_told;
    // Where more are refused than are remembered, none can wait for the next pass.
    const bool waits = is_momentary && refusal.since == passes_ && shown_.size() < most_shown;
    refusal.is_told = was_told || (!is_unclear && !waits);
    const bool is_news = refusal.is_told && !was_told;
    shown_[subject] = std::move(refusal);
    return is_news;
}

std::string to_string(const Refusal& refusal) {
    const std::string text(to_string(refusal.outcome));
    return refusal.code == 0 ? text : text + ": " + std::generic_category().message(refusal.code);
}

void Refusals::erase(const machine::Subject& subject) {
    shown_.erase(subject);
    permanent_.erase(subject);
}

machine::Subject Refusals::rotate() {
    shown_.rotate();
    return shown_.entries().back().first;
}

} // namespace affinityd::enforcer
