// SPDX-License-Identifier: Apache-2.0
#include "app/interrupt_note.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <string_view>

namespace affinityd::app {

namespace {

constexpr std::string_view prefix = "irq:";

/// The interface that one of the vectors for which `is_meant` holds belongs to; null: none.
template <class Predicate>
const std::string* owner(const World& world, Predicate is_meant) {
    for (const auto& [nic, vectors] : world.machine().vectors)
        if (std::ranges::any_of(vectors, is_meant)) return &nic;
    return nullptr;
}

std::string note(const std::string* nic) {
    return nic == nullptr ? "belongs to no NIC, and no policy names it in irqs"
                          : "an interrupt of " + *nic + ": no policy places it";
}

} // namespace

std::optional<Result<std::string>> interrupt_note(const host::Root& root, const World& world,
                                                  const std::string& subject) {
    const auto& irqs = world.machine().irqs;
    if (subject.starts_with(prefix)) {
        const auto number = parse_number<unsigned>(subject.substr(prefix.size()));
        if (!number) return fail("not the number of an interrupt", subject);
        // One that was requested a moment ago is not in the table yet.
        if (irqs.find(*number) == nullptr && !root.proc().exists("irq/" + std::to_string(*number)))
            return fail("this interrupt does not exist", subject);
        return note(owner(world, [&](const machine::Vector& vector) { return vector.irq == *number; }));
    }
    const bool is_label = std::ranges::any_of(irqs.irqs, [&](const irq::Irq& irq) {
        return std::ranges::find(irq.actions, subject) != irq.actions.end();
    });
    if (!is_label) return std::nullopt;
    return note(owner(world, [&](const machine::Vector& vector) { return vector.label == subject; }));
}

} // namespace affinityd::app
