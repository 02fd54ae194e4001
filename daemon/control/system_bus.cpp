// SPDX-License-Identifier: Apache-2.0
#include "control/system_bus.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

namespace affinityd::control {

namespace {

using std::chrono::seconds;

constexpr seconds longest_pause{300};

std::string text_of(int code) { return std::generic_category().message(code); }

} // namespace

SystemBus::SystemBus(Open open) : open_(std::move(open)) {}

SystemBus::~SystemBus() = default;

std::expected<Bus, int> SystemBus::open_system() {
    sd_bus* bus = nullptr;
    const int status = sd_bus_open_system(&bus);
    if (status < 0) return std::unexpected(-status);
    return Bus(bus);
}

void SystemBus::start(sd_event* event, std::string name, Hooks hooks) {
    event_ = event;
    name_ = std::move(name);
    hooks_ = std::move(hooks);
    if (const int status = before_flush(event_, on_end, this, end_); status < 0)
        return note("not on the system bus: " + text_of(-status));
    if (const int status = connect(); status < 0) try_again(-status);
}

int SystemBus::connect() {
    auto bus = open_();
    if (!bus) return -bus.error();
    return prepare(std::move(*bus));
}

int SystemBus::prepare(Bus bus) {
    sd_bus_slot* slot = nullptr;
    int status = sd_bus_add_filter(bus.get(), &slot, on_message, this);
    if (status < 0) return status;
    Slot filter(slot);
    if (hooks_.prepare) status = hooks_.prepare(bus.get());
    if (status >= 0) status = sd_bus_attach_event(bus.get(), event_, SD_EVENT_PRIORITY_NORMAL);
    if (status >= 0) status = sd_bus_request_name_async(bus.get(), &slot, name_.c_str(), 0, on_name, this);
    if (status < 0) return status;
    naming_.reset(slot);
    filter_ = std::move(filter);
    bus_ = std::move(bus);
    is_connected_ = true;
    return 0;
}

int SystemBus::on_name(sd_bus_message* reply, void* userdata, sd_bus_error*) {
    auto& self = *static_cast<SystemBus*>(userdata);
    if (sd_bus_message_is_method_error(reply, SD_BUS_ERROR_NO_REPLY) > 0)
        return 0; // the connection is ending
    self.pause_ = seconds{1};
    self.is_absence_noted_ = false;
    std::uint32_t result = 0;
    constexpr std::uint32_t is_owner = 1; // DBUS_REQUEST_NAME_REPLY_PRIMARY_OWNER
    if (sd_bus_message_is_method_error(reply, nullptr) > 0)
        self.note("the system bus does not let the daemon have the name " + self.name_ + ": " +
                  text_of(sd_bus_message_get_errno(reply)));
    else if (sd_bus_message_read(reply, "u", &result) < 0 || result != is_owner)
        self.note("another program has the name " + self.name_ + " on the system bus");
    else
        self.note("on the system bus as " + self.name_);
    return 0;
}

/// sd-bus sends itself this signal as the last message of a connection, after it has failed all pending
/// calls.
int SystemBus::on_message(sd_bus_message* message, void* userdata, sd_bus_error*) {
    if (sd_bus_message_is_signal(message, "org.freedesktop.DBus.Local", "Disconnected") <= 0) return 0;
    auto& self = *static_cast<SystemBus*>(userdata);
    self.is_connected_ = false;
    self.try_again(ECONNRESET);
    return 0;
}

/// The connection itself is let go by the timer: this may run within a callback of it.
void SystemBus::try_again(int code) {
    if (!std::exchange(is_absence_noted_, true))
        note("not on the system bus: " + text_of(code) + "; the daemon keeps trying");
    sd_event_source* source = nullptr;
    const int status = sd_event_add_time_relative(event_, &source, CLOCK_MONOTONIC, usec_of(pause_),
                                                  usec_of(pause_) / 8, on_timer, this);
    if (status < 0) return note("cannot try to reach the system bus again: " + text_of(-status));
    timer_.reset(source);
    pause_ = std::min(pause_ * 2, longest_pause);
}

void SystemBus::stop() {
    timer_.reset();
    end_.reset();
    is_connected_ = false;
    disconnect();
}

void SystemBus::disconnect() {
    filter_.reset();
    naming_.reset();
    if (std::exchange(bus_, nullptr) != nullptr && hooks_.lost) hooks_.lost();
}

int SystemBus::on_timer(sd_event_source*, std::uint64_t, void* userdata) {
    auto& self = *static_cast<SystemBus*>(userdata);
    self.disconnect();
    if (const int status = self.connect(); status < 0) self.try_again(-status);
    return 0;
}

int SystemBus::on_end(sd_event_source*, void* userdata) {
    static_cast<SystemBus*>(userdata)->stop();
    return 0;
}

void SystemBus::note(const std::string& sentence) const {
    if (hooks_.note) hooks_.note(sentence);
}

} // namespace affinityd::control
