// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/softirqs.hpp"

#include "base/text.hpp"

namespace affinityd::ttcp {

SoftirqCounts parse_softirqs(std::string_view text) {
    SoftirqCounts counts;
    for (const auto line : split(text, '\n')) {
        const auto colon = line.find(':');
        if (colon == std::string_view::npos) continue; // the heading, with the CPUs
        std::uint64_t sum = 0;
        bool is_whole = true;
        const auto words = split_words(line.substr(colon + 1));
        for (const auto word : words) {
            const auto count = parse_number<std::uint64_t>(word);
            is_whole = is_whole && count;
            sum += count.value_or(0);
        }
        const auto kind = trim_text(line.substr(0, colon));
        if (is_whole && !words.empty() && !kind.empty()) counts.emplace_back(kind, sum);
    }
    return counts;
}

} // namespace affinityd::ttcp
