// SPDX-License-Identifier: Apache-2.0
#include "control/manager_object.hpp"

namespace affinityd::control {

namespace {

template <Method method>
int on_call(sd_bus_message* message, void* userdata, sd_bus_error*) {
    const char* argument = "";
    if (sd_bus_message_has_signature(message, "s") > 0)
        if (const int status = sd_bus_message_read(message, "s", &argument); status < 0) return status;
    static_cast<Front*>(userdata)->take({method, argument, Call(message)});
    return 1;
}

/// One of the methods that change something, which is not waited for.
int on_begin(sd_bus_message* message, void* userdata, sd_bus_error* fault) {
    const char* name = "";
    const char* argument = "";
    if (const int status = sd_bus_message_read(message, "ss", &name, &argument); status < 0) return status;
    const auto method = changing_method(name);
    if (!method)
        return sd_bus_error_set(fault, SD_BUS_ERROR_INVALID_ARGS,
                                "the first argument is Reload, Release, Apply or Measure");
    const bool has_argument = *method == Method::release;
    static_cast<Front*>(userdata)->take(
        {*method, has_argument ? argument : "", Call(message), app::Until::begun});
    return 1;
}

/// Fronts decide who may call, per method, not the uid rule of the library.
constexpr std::uint64_t open_to_all = SD_BUS_VTABLE_UNPRIVILEGED;

const sd_bus_vtable vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("GetStatus", "", "s", on_call<Method::get_status>, open_to_all),
    SD_BUS_METHOD("GetPlan", "", "s", on_call<Method::get_plan>, open_to_all),
    SD_BUS_METHOD("GetHistory", "s", "s", on_call<Method::get_history>, open_to_all),
    SD_BUS_METHOD("Explain", "s", "s", on_call<Method::explain>, open_to_all),
    SD_BUS_METHOD("Reload", "", "s", on_call<Method::reload>, open_to_all),
    SD_BUS_METHOD("Release", "s", "s", on_call<Method::release>, open_to_all),
    SD_BUS_METHOD("Apply", "", "s", on_call<Method::apply>, open_to_all),
    SD_BUS_METHOD("Measure", "", "s", on_call<Method::measure>, open_to_all),
    SD_BUS_METHOD("Begin", "ss", "s", on_begin, open_to_all),
    SD_BUS_VTABLE_END,
};

} // namespace

int add_manager_object(sd_bus* bus, Front& front) {
    return sd_bus_add_object_vtable(bus, nullptr, object_path, interface_name, vtable, &front);
}

} // namespace affinityd::control
