// SPDX-License-Identifier: Apache-2.0
#include "control/standstill.hpp"

#include "base/clock.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>

namespace affinityd::control {

namespace {

constexpr unsigned most_looks = 5;

/// Also what is in the socket, where megabytes have room, has not been taken.
bool has_unsent(sd_bus* bus) {
    std::uint64_t messages = 0;
    if (sd_bus_get_n_queued_write(bus, &messages) >= 0 && messages > 0) return true;
    int bytes = 0;
    const int fd = sd_bus_get_fd(bus);
    return fd >= 0 && ::ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

} // namespace

void Standstill::look_soon(sd_event* event, sd_bus* bus) {
    if (timer_) return;
    sd_event_source* source = nullptr;
    const auto wait = usec_of(patience_ / most_looks);
    if (sd_event_add_time_relative(event, &source, CLOCK_MONOTONIC, wait, wait / 4, on_look, this) < 0)
        return; // the next message asks again
    bus_ = bus;
    timer_.reset(source);
}

void Standstill::stop() {
    timer_.reset();
    looks_ = 0;
}

int Standstill::on_look(sd_event_source* source, std::uint64_t, void* userdata) {
    auto& self = *static_cast<Standstill*>(userdata);
    if (!has_unsent(self.bus_)) {
        self.stop();
        return 0;
    }
    if (++self.looks_ >= most_looks) {
        self.stop();
        self.over_();
        return 0;
    }
    if (sd_event_source_set_time_relative(source, usec_of(self.patience_ / most_looks)) < 0 ||
        sd_event_source_set_enabled(source, SD_EVENT_ONESHOT) < 0)
        self.stop();
    return 0;
}

} // namespace affinityd::control
