// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/json_text.hpp"

namespace affinityctl {

using nlohmann::json;

std::string text_of(const json& object, const char* key) {
    const auto found = object.find(key);
    return found == object.end() ? "-" : cell(*found);
}

std::string joined(const json& list, std::string_view between) {
    std::string text;
    for (const auto& item : list)
        text += (text.empty() ? "" : std::string(between)) + cell(item);
    return text;
}

std::string balance_line(const json& answer) {
    const auto balance = answer.find("balance");
    return balance == answer.end() || !balance->is_object() ? "" : balance->value("text", "");
}

json or_null(const std::string& text) { return text.empty() ? json() : json(text); }

json or_null(const std::optional<affinityd::CpuSet>& cpus) { return cpus ? json(cpus->to_list()) : json(); }

} // namespace affinityctl
