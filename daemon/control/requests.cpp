// SPDX-License-Identifier: Apache-2.0
#include "control/requests.hpp"

#include <array>
#include <string_view>
#include <utility>

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

constexpr std::array changing{std::pair(std::string_view("Reload"), Method::reload),
                              std::pair(std::string_view("Release"), Method::release),
                              std::pair(std::string_view("Apply"), Method::apply),
                              std::pair(std::string_view("Measure"), Method::measure)};

/// One of the methods that change something, which is not waited for.
int on_begin(sd_bus_message* message, void* userdata, sd_bus_error* fault) {
    const char* name = "";
    const char* argument = "";
    if (const int status = sd_bus_message_read(message, "ss", &name, &argument); status < 0) return status;
    for (const auto& [known, method] : changing) {
        if (name != known) continue;
        static_cast<Front*>(userdata)->take(
            {method, method == Method::release ? argument : "", Call(message), app::Until::begun});
        return 1;
    }
    return sd_bus_error_set(fault, SD_BUS_ERROR_INVALID_ARGS,
                            "the first argument is Reload, Release, Apply or Measure");
}

/// Fronts decide which user may call which method, not the uid rule of the library.
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

void CommandRunner::read(Method method, const std::string& argument, app::OwnedAnswer answer) {
    if (method == Method::get_status) return commands_.status(std::move(answer));
    if (method == Method::get_plan) return commands_.plan(std::move(answer));
    if (method == Method::explain) return commands_.explain(argument, std::move(answer));
    auto history = commands_.history(argument);
    if (!history) return answer(std::unexpected(std::move(history.error())));
    answer(OwnedText(std::move(*history)));
}

void CommandRunner::run(Request request) {
    auto& [method, argument, call, until] = request;
    if (only_reads(method))
        return read(method, argument, [to = std::move(call)](const Result<OwnedText>& text) mutable {
            to.reply(text ? Result<std::string>(text->full()) : std::unexpected(text.error()));
        });
    auto answer = [to = std::move(call)](const Result<std::string>& text) mutable { to.reply(text); };
    switch (method) {
    case Method::reload:
        return commands_.reload(std::move(answer), until, app::ReloadReason::asked);
    case Method::release:
        return commands_.release(argument, std::move(answer), until);
    case Method::apply:
        return commands_.apply(std::move(answer), until);
    default:
        return measure_(std::move(answer), until);
    }
}

} // namespace affinityd::control
