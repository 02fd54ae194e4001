// SPDX-License-Identifier: Apache-2.0
#include "measure/request.hpp"

namespace affinityd::measure {

std::vector<std::string> command_line(const std::string& program, const Request& request) {
    std::vector<std::string> words{program};
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

std::chrono::seconds time_limit(const Request& request) {
    return 2 * request.duration + std::chrono::seconds(20);
}

} // namespace affinityd::measure
