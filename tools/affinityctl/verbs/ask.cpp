// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/ask.hpp"

#include "affinityctl/views/json_text.hpp"
#include "base/escape.hpp"

#include <fmt/format.h>

namespace affinityctl {

namespace {
constexpr const char* no_root = "--root names a recorded machine, and this is done on the running one only: "
                                "leave --root out";
} // namespace

int complain(const CallError& error) {
    fmt::print(stderr, "affinityctl: {}\n", affinityd::escaped_lines(error.message));
    return error.code;
}

int complain(const affinityd::Error& error) { return complain(CallError{exit_failure, error.to_string()}); }

std::expected<std::string, CallError> ask_daemon(const Globals& globals, const char* method,
                                                 const std::vector<std::string>& arguments) {
    if (globals.is_recorded()) return std::unexpected(CallError{exit_usage, no_root});
    return call_daemon(globals.runtime_dir, method, arguments);
}

nlohmann::json status_if_any(const Globals& globals) {
    const auto answer = ask_daemon(globals, "GetStatus");
    auto value = answer ? nlohmann::json::parse(*answer, nullptr, false) : nlohmann::json();
    return value.is_object() ? value : nlohmann::json();
}

bool refuses_root(const Globals& globals, int& status) {
    if (globals.is_recorded()) status = complain(CallError{exit_usage, no_root});
    return globals.is_recorded();
}

int ask_and_show(const Globals& globals, const char* method, const std::vector<std::string>& arguments,
                 const std::function<void(const nlohmann::json&)>& show) {
    const auto answer = ask_daemon(globals, method, arguments);
    if (!answer) return complain(answer.error());
    if (globals.json) {
        fmt::print("{}\n", *answer);
        return exit_ok;
    }
    const auto value = nlohmann::json::parse(*answer, nullptr, false);
    if (value.is_discarded())
        return complain({exit_failure, "the daemon's answer cannot be read: is it of another version?"});
    show(value);
    return exit_ok;
}

int tell(const Globals& globals, const char* method, const std::vector<std::string>& arguments) {
    const auto answer = ask_daemon(globals, method, arguments);
    if (!answer) {
        if (globals.json) fmt::print("{}\n", dump({{"ok", false}, {"message", answer.error().message}}));
        return complain(answer.error());
    }
    if (globals.json)
        fmt::print("{}\n", dump({{"ok", true}, {"message", *answer}}));
    else if (!answer->empty())
        fmt::print("{}\n", affinityd::escaped_lines(*answer));
    return exit_ok;
}

} // namespace affinityctl
