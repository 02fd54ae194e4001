// SPDX-License-Identifier: Apache-2.0
#include "enforcer/refusals.hpp"

namespace affinityd::enforcer {

bool Refusals::add(const machine::Subject& subject, Refusal refusal) {
    // A task of the kernel's that is immovable may become movable; a managed interrupt never does.
    if (refusal.outcome == Outcome::immovable && std::holds_alternative<machine::IrqMask>(subject))
        permanent_[subject] = {};
    const auto* known = shown_.find(subject);
    const bool is_news = known == nullptr || known->outcome != refusal.outcome || known->code != refusal.code;
    shown_[subject] = std::move(refusal);
    return is_news;
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
