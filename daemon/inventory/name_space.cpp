// SPDX-License-Identifier: Apache-2.0
#include "inventory/name_space.hpp"

#include "base/text.hpp"

namespace affinityd::inventory {

std::uint64_t name_space(const host::Root& root, const std::string& process, const std::string& kind) {
    const auto link = root.proc().link(process + "/ns/" + kind).value_or("");
    const auto head = kind + ":[";
    if (!link.starts_with(head) || !link.ends_with("]")) return 0;
    const auto number = std::string_view(link).substr(head.size(), link.size() - head.size() - 1);
    return parse_number<std::uint64_t>(number).value_or(0);
}

bool is_namespace_init(const host::Root& root, int pid) {
    const auto text = root.proc().text(std::to_string(pid) + "/status");
    if (!text) return false;
    for (const auto line : split(*text, '\n'))
        if (line.starts_with("NSpid:")) return split_words(line).back() == "1";
    return false;
}

} // namespace affinityd::inventory
