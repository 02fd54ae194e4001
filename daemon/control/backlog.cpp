// SPDX-License-Identifier: Apache-2.0
#include "control/backlog.hpp"

#include <cstdint>

#include <systemd/sd-bus.h>

namespace affinityd::control {

namespace {

/// What a message takes beside its text, roughly.
constexpr std::size_t frame = 1024;
constexpr std::uint64_t most_messages = 1024;

std::uint64_t queued(sd_bus* bus) {
    std::uint64_t count = 0;
    return sd_bus_get_n_queued_write(bus, &count) < 0 ? 0 : count;
}

} // namespace

void Backlog::forget_what_left(sd_bus* bus) {
    if (queued(bus) == 0) bytes_ = 0;
}

bool Backlog::has_room(sd_bus* bus) {
    forget_what_left(bus);
    return bytes_ < most_;
}

bool Backlog::has_room_for_refusals(sd_bus* bus) {
    forget_what_left(bus);
    return bytes_ / 2 < most_;
}

void Backlog::add(std::size_t bytes) { bytes_ += bytes + frame; }

bool Backlog::is_swamped(sd_bus* bus) { return queued(bus) > most_messages; }

} // namespace affinityd::control
