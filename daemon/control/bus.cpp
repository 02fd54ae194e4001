// SPDX-License-Identifier: Apache-2.0
#include "control/bus.hpp"

#include "base/clock.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

#include <sys/socket.h>
#include <systemd/sd-login.h>

namespace affinityd::control {

namespace {

using std::chrono::seconds;

constexpr seconds longest_pause{300};
constexpr std::uint64_t most_answers = 64; // that the bus has not taken; further ones are dropped
constexpr const char* usual_address = "unix:path=/run/dbus/system_bus_socket"; // sd-bus's own

std::string text_of(int code) { return std::generic_category().message(code); }

} // namespace

SystemBus::SystemBus(Open open) : open_(std::move(open)) {}

SystemBus::~SystemBus() = default;

/// As sd_bus_open_system(3), which takes in files that callers send along: to close these may take as long as
/// a caller likes (a connection that lingers). Without, the bus refuses such calls.
std::expected<Bus, int> SystemBus::open_system() {
    sd_bus* raw = nullptr;
    int status = sd_bus_new(&raw);
    Bus bus(raw);
    const char* address = ::secure_getenv("DBUS_SYSTEM_BUS_ADDRESS");
    if (status >= 0) status = sd_bus_set_address(raw, address == nullptr ? usual_address : address);
    if (status >= 0) status = sd_bus_set_bus_client(raw, 1);
    if (status >= 0) status = sd_bus_negotiate_fds(raw, 0);
    if (status >= 0) status = sd_bus_start(raw);
    if (status < 0) return std::unexpected(-status);
    return bus;
}

void SystemBus::start(sd_event* event, std::string name, Hooks hooks) {
    event_ = event;
    name_ = std::move(name);
    hooks_ = std::move(hooks);
    if (const int status = connect(); status < 0) try_again(-status);
}

int SystemBus::connect() {
    auto opened = open_();
    if (!opened) return -opened.error();
    Bus bus = std::move(*opened);
    sd_bus_slot* slot = nullptr;
    int status = sd_bus_add_filter(bus.get(), &slot, on_message, this);
    if (status < 0) return status;
    Slot filter(slot);
    auto outbox = std::make_shared<Outbox>(event_, bus.get(), most_answers, [this] { begin_anew(); });
    if (hooks_.prepare) status = hooks_.prepare(bus.get(), outbox);
    if (status >= 0) status = sd_bus_attach_event(bus.get(), event_, SD_EVENT_PRIORITY_NORMAL);
    Slot joining;
    if (status >= 0) status = join(bus.get(), joining);
    if (status < 0) return status;
    link_ = {std::move(bus), std::move(outbox), std::move(filter), std::move(joining), true};
    return 0;
}

/// Asks for the name, or else for anything: an answer says that the connection works.
int SystemBus::join(sd_bus* bus, Slot& into) {
    // A bus that reads nothing does not see the end of the connection either: that one would keep the name.
    std::uint64_t flags = SD_BUS_NAME_ALLOW_REPLACEMENT;
    if (is_replacing_) flags |= SD_BUS_NAME_REPLACE_EXISTING;
    sd_bus_slot* slot = nullptr;
    const int status =
        name_.empty() ? sd_bus_call_method_async(bus, &slot, "org.freedesktop.DBus", "/org/freedesktop/DBus",
                                                 "org.freedesktop.DBus", "GetId", on_joined, this, "")
                      : sd_bus_request_name_async(bus, &slot, name_.c_str(), flags, on_joined, this);
    into.reset(slot);
    return status;
}

int SystemBus::on_joined(sd_bus_message* reply, void* userdata, sd_bus_error*) {
    auto& self = *static_cast<SystemBus*>(userdata);
    if (sd_bus_message_is_method_error(reply, SD_BUS_ERROR_NO_REPLY) > 0)
        return 0; // the connection is ending
    self.pause_ = seconds{1};
    self.is_absence_noted_ = self.is_replacing_ = false;
    if (!self.name_.empty()) self.tell_of_name(reply);
    return 0;
}

void SystemBus::tell_of_name(sd_bus_message* reply) const {
    std::uint32_t result = 0;
    constexpr std::uint32_t is_owner = 1; // DBUS_REQUEST_NAME_REPLY_PRIMARY_OWNER
    if (sd_bus_message_is_method_error(reply, nullptr) > 0)
        note("the system bus does not let the daemon have the name " + name_ + ": " +
             text_of(sd_bus_message_get_errno(reply)));
    else if (sd_bus_message_read(reply, "u", &result) < 0 || result != is_owner)
        note("another program has the name " + name_ + " on the system bus");
    else
        note("on the system bus as " + name_);
}

/// sd-bus sends itself this signal as the last message of a connection, after it has failed all pending
/// calls.
int SystemBus::on_message(sd_bus_message* message, void* userdata, sd_bus_error*) {
    auto& self = *static_cast<SystemBus*>(userdata);
    if (sd_bus_message_is_signal(message, "org.freedesktop.DBus.Local", "Disconnected") <= 0) return 0;
    self.link_.is_up = false;
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
    link_.is_up = false;
    disconnect();
}

void SystemBus::disconnect() {
    const Link link = std::exchange(link_, {});
    if (link.bus && hooks_.lost) hooks_.lost();
}

int SystemBus::on_timer(sd_event_source*, std::uint64_t, void* userdata) {
    auto& self = *static_cast<SystemBus*>(userdata);
    self.disconnect();
    if (const int status = self.connect(); status < 0) self.try_again(-status);
    return 0;
}

/// Breaks the connection, so that it ends as any other does and sd-bus fails the calls that are under way.
void SystemBus::begin_anew() {
    if (!std::exchange(is_absence_noted_, true))
        note("the system bus takes no more answers: connecting anew");
    is_replacing_ = true;
    ::shutdown(sd_bus_get_fd(link_.bus.get()), SHUT_RDWR);
}

void SystemBus::note(const std::string& sentence) const {
    if (hooks_.note) hooks_.note(sentence);
}

namespace {

int keep_reply(sd_bus_message* reply, void* userdata, sd_bus_error*) {
    static_cast<Message*>(userdata)->reset(sd_bus_message_ref(reply));
    return 0;
}

/// The jobs of the service manager, of which there are few; null without an answer. Not by sd_bus_call(3),
/// whose time begins after the handshake, for which it waits up to 90 s.
Message list_jobs() {
    Message jobs;
    const auto bus = SystemBus::open_system();
    if (!bus ||
        sd_bus_call_method_async(bus->get(), nullptr, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                                 "org.freedesktop.systemd1.Manager", "ListJobs", keep_reply, &jobs, "") < 0)
        return {};
    const auto end = std::chrono::steady_clock::now() + seconds(1);
    int status = 0;
    for (auto now = end - seconds(1); !jobs && status >= 0 && now < end;
         now = std::chrono::steady_clock::now()) {
        status = sd_bus_process(bus->get(), nullptr);
        if (status == 0)
            status =
                sd_bus_wait(bus->get(), usec_of(std::chrono::ceil<std::chrono::microseconds>(end - now)));
    }
    return jobs;
}

} // namespace

bool is_being_restarted() {
    if (std::getenv("NOTIFY_SOCKET") == nullptr) return false; // no service of Type=notify
    char* unit = nullptr;
    if (sd_pid_get_unit(0, &unit) < 0) return false;
    const std::unique_ptr<char, Release<std::free>> owned_unit(unit);
    const auto jobs = list_jobs();
    if (!jobs || sd_bus_message_enter_container(jobs.get(), 'a', "(usssoo)") < 0) return false;
    std::uint32_t id = 0;
    const char *name = nullptr, *type = nullptr, *state = nullptr, *job = nullptr, *object = nullptr;
    while (sd_bus_message_read(jobs.get(), "(usssoo)", &id, &name, &type, &state, &job, &object) > 0)
        if (std::string_view(name) == unit) return std::string_view(type) == "restart";
    return false;
}

} // namespace affinityd::control
