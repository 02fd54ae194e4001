// SPDX-License-Identifier: Apache-2.0
#include "irq/threads.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <map>
#include <vector>

namespace affinityd::irq {

std::optional<unsigned> parse_irq_thread(std::string_view comm) {
    constexpr std::string_view prefix = "irq/";
    if (!comm.starts_with(prefix)) return std::nullopt;
    const auto rest = comm.substr(prefix.size());
    const auto dash = rest.find('-');
    if (dash == std::string_view::npos) return std::nullopt; // without it the number may be cut
    return parse_number<unsigned>(rest.substr(0, dash));
}

void attach_threads(InterruptTable& table, std::span<const NamedThread> threads) {
    std::map<unsigned, std::vector<int>> by_irq;
    for (const auto& thread : threads)
        if (const auto number = parse_irq_thread(thread.comm)) by_irq[*number].push_back(thread.tid);
    for (auto& line : table.irqs) {
        const auto found = by_irq.find(line.number);
        line.threads = found == by_irq.end() ? std::vector<int>() : found->second;
        std::ranges::sort(line.threads);
    }
}

} // namespace affinityd::irq
