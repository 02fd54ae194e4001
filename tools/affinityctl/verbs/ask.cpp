// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/ask.hpp"

#include "affinityctl/daemon/members.hpp"
#include "affinityctl/views/json_text.hpp"
#include "base/escape.hpp"

#include <CLI/CLI.hpp>

#include <fmt/format.h>

namespace affinityctl {

namespace {
constexpr const char* no_root = "--root names a recorded machine, and this is done on the running one only: "
                                "leave --root out";
/// A pass over a large and busy machine may take minutes, and goes on when nobody waits any more.
constexpr std::chrono::minutes longest_work{10};

/// A daemon of an earlier version answers with the message alone.
nlohmann::json done_of(const std::string& answer) {
    auto value = nlohmann::json::parse(answer, nullptr, false);
    const bool is_whole = value.is_object() && value.value("ok", nlohmann::json()).is_boolean();
    return is_whole
               ? value
               : nlohmann::json{{"ok", true}, {"message", answer}, {"policies", nlohmann::json::array()}};
}
} // namespace

int complain(const CallError& error) {
    fmt::print(stderr, "affinityctl: {}\n", affinityd::escaped_lines(error.message));
    return error.code;
}

int complain(const affinityd::Error& error) { return complain(CallError{exit_failure, error.to_string()}); }

std::expected<std::string, CallError> ask_daemon(const Globals& globals, const char* method,
                                                 const std::vector<std::string>& arguments,
                                                 const Patience& patience) {
    if (globals.is_recorded()) return std::unexpected(CallError{exit_usage, no_root});
    return call_daemon(globals.runtime_dir, method, arguments, patience);
}

nlohmann::json status_if_any(const Globals& globals) {
    return ask_daemon_object(globals, "GetStatus").value_or(nlohmann::json());
}

bool refuses_root(const Globals& globals, int& status) {
    if (globals.is_recorded()) status = complain(CallError{exit_usage, no_root});
    return globals.is_recorded();
}

std::expected<nlohmann::json, CallError> ask_daemon_object(const Globals& globals, const char* method,
                                                           const std::vector<std::string>& arguments) {
    const auto answer = ask_daemon(globals, method, arguments);
    if (!answer) return std::unexpected(answer.error());
    auto value = nlohmann::json::parse(*answer, nullptr, false);
    if (value.is_object()) return value;
    return std::unexpected(
        CallError{exit_failure, "the daemon's answer cannot be read: is it of another version?"});
}

int tell(const Globals& globals, const Order& order) {
    std::vector<std::string> arguments;
    if (order.no_block)
        arguments = {order.method, order.argument};
    else if (std::string_view(order.method) == "Release")
        arguments = {order.argument};
    const auto answer =
        ask_daemon(globals, order.no_block ? "Begin" : order.method, arguments,
                   {order.no_block ? Patience{}.time : longest_work, order.no_block ? "" : order.doing});
    if (!answer) {
        const auto& [code, message] = answer.error();
        if (globals.json)
            fmt::print("{}\n",
                       dump({{"ok", false}, {"message", message}, {"policies", nlohmann::json::array()}}));
        return complain(answer.error());
    }
    const auto done = done_of(*answer);
    const auto message = text(done, "message");
    if (globals.json)
        fmt::print("{}\n", dump(done));
    else if (!message.empty())
        fmt::print("{}\n", affinityd::escaped_lines(message));
    return done.value("ok", false) ? exit_ok : exit_failure;
}

void add_no_block(CLI::App& verb, bool& no_block) {
    verb.add_flag("--no-block", no_block, "have it begun, and do not wait for its end");
}

} // namespace affinityctl
