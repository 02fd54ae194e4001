// SPDX-License-Identifier: Apache-2.0
#include "control/command_runner.hpp"

#include <string>
#include <utility>

namespace affinityd::control {

CommandRunner::CommandRunner(sd_event* event, app::Commands& commands, Measure measure)
    : commands_(commands), measure_(std::move(measure)), answers_(event, {}) {}

void CommandRunner::read(Method method, const std::string& argument, app::OwnedAnswer answer) {
    if (method == Method::get_status) return commands_.status(std::move(answer));
    if (method == Method::get_plan) return commands_.plan(std::move(answer));
    if (method == Method::explain) return commands_.explain(argument, std::move(answer));
    auto history = commands_.history(argument);
    if (!history) return answer(std::unexpected(std::move(history.error())));
    answer(OwnedText(std::move(*history)));
}

void CommandRunner::run(Request request) {
    if (!only_reads(request.method)) return change(std::move(request));
    const auto key = std::to_string(*changes_) + " " + std::to_string(static_cast<int>(request.method)) +
                     " " + request.argument;
    const auto build = [&](app::OwnedAnswer answer) {
        read(request.method, request.argument, std::move(answer));
    };
    answers_.ask(key, build, std::nullopt, std::move(request.call));
}

void CommandRunner::change(Request request) {
    auto& [method, argument, call, until] = request;
    ++*changes_;
    auto answer = [to = std::move(call), changes = changes_](const Result<std::string>& text) mutable {
        ++*changes;
        to.reply(text);
    };
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
