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

std::string print_record(const BannedLists& lists) {
    std::string text;
    for (const auto& [socket, irqs] : lists) {
        text += socket;
        for (const unsigned irq : irqs)
            text += " " + std::to_string(irq);
        text += '\n';
    }
    return text;
}

BannedLists parse_record(std::string_view text) {
    BannedLists lists;
    for (const auto line : split(text, '\n')) {
        const auto words = split_words(line);
        if (words.empty()) continue;
        auto& irqs = lists[std::string(words[0])];
        for (std::size_t i = 1; i < words.size(); ++i)
            if (const auto irq = parse_number<unsigned>(words[i])) irqs.push_back(*irq);
        std::ranges::sort(irqs);
    }
    return lists;
}

} // namespace affinityd::coexist
