// SPDX-License-Identifier: Apache-2.0
#include "control/manager_object.hpp"

#include "base/utf8.hpp"
#include "control/access.hpp"

#include <systemd/sd-bus.h>

namespace affinityd::control {

namespace {

ManagerObject& object_of(void* userdata) { return *static_cast<ManagerObject*>(userdata); }

/// D-Bus carries nothing but UTF-8, and faults quote policy files, which are any bytes.
int reply_text(sd_bus_message* call, const std::string& text) {
    return sd_bus_reply_method_return(call, "s", valid_utf8(text).c_str());
}

int reply_error(sd_bus_message* call, const Error& error) {
    return sd_bus_reply_method_errorf(call, "org.affinityd.Error.Failed", "%s",
                                      valid_utf8(error.to_string()).c_str());
}

int reply(sd_bus_message* call, const Result<std::string>& result) {
    return result ? reply_text(call, *result) : reply_error(call, result.error());
}

std::string text_argument(sd_bus_message* call) {
    const char* text = nullptr;
    return sd_bus_message_read(call, "s", &text) > 0 && text != nullptr ? text : "";
}

int get_status(sd_bus_message* call, void* userdata, sd_bus_error*) {
    return reply_text(call, object_of(userdata).commands.status());
}
int get_plan(sd_bus_message* call, void* userdata, sd_bus_error*) {
    return reply_text(call, object_of(userdata).commands.plan());
}

int get_history(sd_bus_message* call, void* userdata, sd_bus_error*) {
    return reply_text(call, object_of(userdata).commands.history(text_argument(call)));
}

int explain(sd_bus_message* call, void* userdata, sd_bus_error*) {
    return reply(call, object_of(userdata).commands.explain(text_argument(call)));
}

int reload(sd_bus_message* call, void* userdata, sd_bus_error* error) {
    if (const int allowed = check_access(call, error); allowed <= 0) return allowed;
    return reply(call, object_of(userdata).commands.reload());
}

int release(sd_bus_message* call, void* userdata, sd_bus_error* error) {
    if (const int allowed = check_access(call, error); allowed <= 0) return allowed;
    return reply(call, object_of(userdata).commands.release(text_argument(call)));
}

int apply(sd_bus_message* call, void* userdata, sd_bus_error* error) {
    if (const int allowed = check_access(call, error); allowed <= 0) return allowed;
    object_of(userdata).commands.apply();
    return reply_text(call, "");
}

int measure(sd_bus_message* call, void* userdata, sd_bus_error* error) {
    if (const int allowed = check_access(call, error); allowed <= 0) return allowed;
    const auto started = object_of(userdata).hooks.measure();
    return started ? reply_text(call, "") : reply_error(call, started.error());
}

/// Who may call is decided in check_access, per method, not by the uid rule of the library.
constexpr std::uint64_t open_to_all = SD_BUS_VTABLE_UNPRIVILEGED;

const sd_bus_vtable vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("GetStatus", "", "s", get_status, open_to_all),
    SD_BUS_METHOD("GetPlan", "", "s", get_plan, open_to_all),
    SD_BUS_METHOD("GetHistory", "s", "s", get_history, open_to_all),
    SD_BUS_METHOD("Explain", "s", "s", explain, open_to_all),
    SD_BUS_METHOD("Reload", "", "s", reload, open_to_all),
    SD_BUS_METHOD("Release", "s", "s", release, open_to_all),
    SD_BUS_METHOD("Apply", "", "s", apply, open_to_all),
    SD_BUS_METHOD("Measure", "", "s", measure, open_to_all),
    SD_BUS_VTABLE_END,
};

} // namespace

int add_manager_object(sd_bus* bus, ManagerObject& object) {
    return sd_bus_add_object_vtable(bus, nullptr, object_path, interface_name, vtable, &object);
}

} // namespace affinityd::control
