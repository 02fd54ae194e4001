// SPDX-License-Identifier: Apache-2.0
#include "inventory/session.hpp"

#include "base/text.hpp"
#include "host/root.hpp"

#include <string>

namespace affinityd::inventory {

std::optional<int> read_session(const host::Root& root, int pid) {
    constexpr std::size_t session = 3; // behind the name come state, parent, process group and session
    const auto text = root.proc().text(std::to_string(pid) + "/stat");
    if (!text) return std::nullopt;
    const auto words = split_words(std::string_view(*text).substr(text->rfind(')') + 1));
    return words.size() > session ? parse_number<int>(words[session]) : std::nullopt;
}

bool is_namespace_init(const host::Root& root, int pid) {
    const auto text = root.proc().text(std::to_string(pid) + "/status");
    if (!text) return false;
    for (const auto line : split(*text, '\n'))
        if (line.starts_with("NSpid:")) return split_words(line).back() == "1";
    return false;
}

} // namespace affinityd::inventory
