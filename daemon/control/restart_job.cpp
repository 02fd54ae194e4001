// SPDX-License-Identifier: Apache-2.0
#include "control/restart_job.hpp"

#include "control/handles.hpp"

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <systemd/sd-login.h>

namespace affinityd::control {

namespace {

/// The jobs of the service manager, of which there are few; null without an answer.
Message list_jobs() {
    constexpr std::uint64_t patience = 1'000'000; // microseconds
    sd_bus* opened = nullptr;
    if (sd_bus_open_system(&opened) < 0) return {};
    const Bus bus(opened);
    sd_bus_message *call = nullptr, *reply = nullptr;
    int status =
        sd_bus_message_new_method_call(opened, &call, "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                                       "org.freedesktop.systemd1.Manager", "ListJobs");
    const Message owned_call(call);
    if (status >= 0) status = sd_bus_call(opened, call, patience, nullptr, &reply);
    return Message(reply);
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
