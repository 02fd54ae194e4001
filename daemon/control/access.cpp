// SPDX-License-Identifier: Apache-2.0
#include "control/access.hpp"

#include "control/manager_object.hpp"

#include <cerrno>

#include <unistd.h>

namespace affinityd::control {

namespace {

bool caller_is_root(sd_bus_message* call) {
    sd_bus_creds* creds = nullptr;
    uid_t uid = static_cast<uid_t>(-1);
    // From the bus driver or the socket, never from what the message says of itself.
    const bool known = sd_bus_query_sender_creds(call, SD_BUS_CREDS_EUID, &creds) >= 0 &&
                       sd_bus_creds_get_euid(creds, &uid) >= 0;
    sd_bus_creds_unref(creds);
    return known && (uid == 0 || uid == ::geteuid());
}

/// Asks polkit, and waits for it no longer than a moment: nothing interactive, so it answers from its rules
/// at once.
int ask_polkit(sd_bus_message* call, sd_bus_error* error) {
    sd_bus* bus = sd_bus_message_get_bus(call);
    sd_bus_message* question = nullptr;
    sd_bus_message* answer = nullptr;
    sd_bus_error fault = SD_BUS_ERROR_NULL;
    constexpr std::uint64_t patience_usec = 2'000'000;
    int authorized = 0;
    int status = sd_bus_message_new_method_call(bus, &question, "org.freedesktop.PolicyKit1",
                                                "/org/freedesktop/PolicyKit1/Authority",
                                                "org.freedesktop.PolicyKit1.Authority", "CheckAuthorization");
    if (status >= 0)
        status = sd_bus_message_append(question, "(sa{sv})sa{ss}us", "system-bus-name", 1, "name", "s",
                                       sd_bus_message_get_sender(call), manage_action, 0, 0U, "");
    if (status >= 0) status = sd_bus_call(bus, question, patience_usec, &fault, &answer);
    if (status >= 0) status = sd_bus_message_enter_container(answer, 'r', "bba{ss}");
    if (status >= 0) status = sd_bus_message_read(answer, "b", &authorized);
    sd_bus_error_free(&fault);
    sd_bus_message_unref(question);
    sd_bus_message_unref(answer);
    if (status >= 0 && authorized != 0) return 1;
    return sd_bus_error_setf(error, SD_BUS_ERROR_ACCESS_DENIED,
                             "changing affinity needs root or the polkit action %s", manage_action);
}

} // namespace

int check_access(sd_bus_message* call, sd_bus_error* error) {
    if (caller_is_root(call)) return 1;
    if (sd_bus_message_get_sender(call) == nullptr)
        return sd_bus_error_setf(error, SD_BUS_ERROR_ACCESS_DENIED, "changing affinity needs root");
    return ask_polkit(call, error);
}

} // namespace affinityd::control
