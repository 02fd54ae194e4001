// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/verbs/ask.hpp"

#include "base/escape.hpp"

#include <fmt/format.h>

namespace affinityctl {

int complain(const CallError& error) {
    fmt::print(stderr, "affinityctl: {}\n", affinityd::escaped_lines(error.message));
    return error.code;
}

int complain(const affinityd::Error& error) { return complain(CallError{exit_failure, error.to_string()}); }

int ask_and_show(const Globals& globals, const char* method, const std::vector<std::string>& arguments,
                 const std::function<void(const nlohmann::json&)>& show) {
    const auto answer = call_daemon(globals.runtime_dir, method, arguments);
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
    const auto answer = call_daemon(globals.runtime_dir, method, arguments);
    if (!answer) {
        if (globals.json)
            fmt::print("{}\n", nlohmann::json{{"ok", false}, {"message", answer.error().message}}.dump());
        return complain(answer.error());
    }
    if (globals.json)
        fmt::print("{}\n", nlohmann::json{{"ok", true}, {"message", *answer}}.dump());
    else if (!answer->empty())
        fmt::print("{}\n", *answer);
    return exit_ok;
}

} // namespace affinityctl
