// SPDX-License-Identifier: Apache-2.0
#include "coexist/irqbalance_protocol.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace affinityd::coexist {

namespace {

/// What current versions copy of a list; older ones take 500 bytes in all.
constexpr std::size_t longest_list = 255;

} // namespace

std::optional<std::string> ban_request(const std::vector<unsigned>& irqs) {
    std::string list;
    for (const unsigned irq : irqs) {
        list += (list.empty() ? "" : " ") + std::to_string(irq);
        if (list.size() > longest_list) return std::nullopt;
    }
    return "settings ban irqs " + (list.empty() ? "NONE" : list);
}

std::vector<unsigned> parse_irqbalance_setup(std::string_view text) {
    std::vector<unsigned> irqs;
    const auto words = split_words(text);
    for (std::size_t i = 0; i + 1 < words.size(); ++i)
        if (words[i] == "IRQ")
            if (const auto number = parse_number<unsigned>(words[i + 1])) irqs.push_back(*number);
    std::ranges::sort(irqs);
    irqs.erase(std::ranges::unique(irqs).begin(), irqs.end());
    return irqs;
}

bool is_setup_answer(std::string_view text) { return text.starts_with("SLEEP "); }

bool is_irqbalance_socket(std::string_view name) {
    constexpr std::string_view head = "irqbalance";
    constexpr std::string_view tail = ".sock";
    if (!name.starts_with(head) || !name.ends_with(tail) || name.size() <= head.size() + tail.size())
        return false;
    name.remove_prefix(head.size());
    name.remove_suffix(tail.size());
    return parse_number<unsigned>(name).has_value();
}

} // namespace affinityd::coexist
