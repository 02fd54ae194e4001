// SPDX-License-Identifier: Apache-2.0
#include "accounting/softirq_time.hpp"

#include "base/text.hpp"

#include <cstdint>
#include <vector>

namespace affinityd::accounting {

namespace {

/// The machine's softirq time: field 7 of the line "cpu".
std::optional<double> softirq_ticks(std::string_view stat) {
    for (const auto line : split(stat, '\n')) {
        const auto words = split_words(line);
        if (words.size() < 8 || words[0] != "cpu") continue;
        const auto number = parse_number<std::uint64_t>(words[7]);
        return number ? std::optional(static_cast<double>(*number)) : std::nullopt;
    }
    return std::nullopt;
}

/// The counts of one line, over all CPUs.
double sum_of(const std::vector<std::string_view>& words) {
    double sum = 0;
    for (std::size_t i = 1; i < words.size(); ++i)
        sum += static_cast<double>(parse_number<std::uint64_t>(words[i]).value_or(0));
    return sum;
}

} // namespace

std::optional<double> network_softirq_seconds(std::string_view stat, std::string_view softirqs,
                                              double ticks_per_second) {
    double all = 0, network = 0;
    for (const auto line : split(softirqs, '\n')) {
        const auto words = split_words(line);
        if (words.empty() || !words[0].ends_with(':')) continue;
        const double count = sum_of(words);
        all += count;
        if (words[0] == "NET_RX:" || words[0] == "NET_TX:") network += count;
    }
    const auto ticks = softirq_ticks(stat);
    if (!ticks || all <= 0) return std::nullopt;
    return *ticks / ticks_per_second * network / all;
}

std::map<unsigned, double> interrupt_seconds(std::string_view stat, double ticks_per_second) {
    std::map<unsigned, double> seconds;
    for (const auto line : split(stat, '\n')) {
        if (!line.starts_with("cpu")) break; // the other lines may be long
        const auto words = split_words(line);
        const auto cpu = parse_number<unsigned>(words[0].substr(3));
        if (!cpu || words.size() < 8) continue;
        const auto irq = parse_number<std::uint64_t>(words[6]);
        const auto softirq = parse_number<std::uint64_t>(words[7]);
        if (irq && softirq)
            seconds[*cpu] = (static_cast<double>(*irq) + static_cast<double>(*softirq)) / ticks_per_second;
    }
    return seconds;
}

} // namespace affinityd::accounting
