// SPDX-License-Identifier: Apache-2.0
#include "coexist/irqbalance_record.hpp"

#include "base/text.hpp"

#include <algorithm>

namespace affinityd::coexist {

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
