// SPDX-License-Identifier: Apache-2.0
#include "say.hpp"

#include <fmt/format.h>

namespace affinityctl {

int complain(const CallError& error) {
    fmt::print(stderr, "affinityctl: {}\n", error.message);
    return error.code;
}

int ask_and_show(const Globals& globals, const char* method, const std::vector<std::string>& arguments,
                 const std::function<void(const nlohmann::json&)>& show) {
    const auto answer = call_daemon(globals, method, arguments);
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
    const auto answer = call_daemon(globals, method, arguments);
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

std::string text_of(const nlohmann::json& object, const char* key) {
    const auto found = object.find(key);
    if (found == object.end() || found->is_null()) return "-";
    std::string text = found->is_string() ? found->get<std::string>() : found->dump();
    return text.empty() ? "-" : text;
}

} // namespace affinityctl
