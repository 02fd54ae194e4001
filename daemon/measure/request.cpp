// SPDX-License-Identifier: Apache-2.0
#include "measure/request.hpp"

#include <nlohmann/json.hpp>

namespace affinityd::measure {

std::vector<std::string> options_of(const Request& request) {
    std::vector<std::string> words;
    if (request.target.empty())
        words.emplace_back("--loopback");
    else
        words.insert(words.end(), {"--target", request.target});
    words.insert(words.end(), {"--seconds", std::to_string(request.duration.count()), "--json"});
    if (request.bytes > 0) words.insert(words.end(), {"--bytes", std::to_string(request.bytes)});
    if (request.skip_if_busier)
        words.insert(words.end(), {"--idle-only", std::to_string(*request.skip_if_busier)});
    return words;
}

std::string to_line(const std::vector<std::string>& options) {
    using nlohmann::json;
    return json(options).dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<std::vector<std::string>> from_line(std::string_view line) {
    const auto value = nlohmann::json::parse(line, nullptr, false);
    std::vector<std::string> options;
    if (!value.is_array()) return fail("not a JSON array of options");
    for (const auto& word : value) {
        if (!word.is_string()) return fail("an option that is no string");
        options.push_back(word.get<std::string>());
    }
    return options;
}

std::chrono::seconds time_limit(const Request& request) {
    return 2 * request.duration + std::chrono::seconds(20);
}

} // namespace affinityd::measure
