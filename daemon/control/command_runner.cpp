// SPDX-License-Identifier: Apache-2.0
#include "control/command_runner.hpp"

namespace affinityd::control {

void CommandRunner::read(Method method, const std::string& argument, app::OwnedAnswer answer) {
    if (method == Method::get_status) return commands_.status(std::move(answer));
    if (method == Method::get_plan) return commands_.plan(std::move(answer));
    if (method == Method::explain) return commands_.explain(argument, std::move(answer));
    answer(OwnedText(commands_.history(argument)));
}

void CommandRunner::run(Request request) {
    auto& [method, argument, call] = request;
    if (only_reads(method))
        return read(method, argument, [to = std::move(call)](Result<OwnedText> text) mutable {
            if (text)
                to.reply(text->full());
            else
                to.reply(std::unexpected(text.error()));
        });
    auto answer = [to = std::move(call)](const Result<std::string>& text) mutable { to.reply(text); };
    switch (method) {
    case Method::reload:
        return commands_.reload(std::move(answer));
    case Method::release:
        return commands_.release(argument, std::move(answer));
    case Method::apply:
        commands_.apply();
        return answer("");
    default:
        if (const auto started = measure_(); !started) return answer(std::unexpected(started.error()));
        return answer("");
    }
}

} // namespace affinityd::control
