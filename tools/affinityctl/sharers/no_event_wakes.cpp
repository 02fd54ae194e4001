// SPDX-License-Identifier: Apache-2.0
// Where affinityctl is built without BPF.
#include "affinityctl/sharers/event_wakes.hpp"

namespace affinityctl {

using affinityd::Result;

struct EventWakes::Programs {};

EventWakes::EventWakes(std::unique_ptr<Programs> programs) : programs_(std::move(programs)) {}
EventWakes::EventWakes(EventWakes&&) noexcept = default;
EventWakes& EventWakes::operator=(EventWakes&&) noexcept = default;
EventWakes::~EventWakes() = default;

Result<EventWakes> EventWakes::open(const affinityd::host::Root& /*root*/) {
    return affinityd::fail("this affinityctl is built without BPF");
}

void EventWakes::watch(int /*pid*/) { programs_.reset(); }

Result<void> EventWakes::look(unsigned /*parts*/) {
    programs_.reset();
    return {};
}

bool EventWakes::were_many() const { return programs_ != nullptr; }

void EventWakes::rest() { programs_.reset(); }

void EventWakes::stop() { programs_.reset(); }

Result<Wakes> EventWakes::take() const {
    if (programs_ == nullptr) return affinityd::fail("this affinityctl is built without BPF");
    return Wakes{};
}

} // namespace affinityctl
