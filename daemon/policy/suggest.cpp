// SPDX-License-Identifier: Apache-2.0
#include "policy/suggest.hpp"

#include "base/escape.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace affinityd::policy {

namespace {

constexpr std::size_t max_word = 40; // a longer word is no typo of a key

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c == '-' ? '_' : c; }

/// Number of letters to insert, remove, replace or swap with their neighbour.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1);
    std::vector<std::size_t> above(b.size() + 1);
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j)
        above[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const char x = lower(a[i - 1]);
            const char y = lower(b[j - 1]);
            row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (x == y ? 0U : 1U)});
            const bool swapped = i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y;
            if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
        }
        std::swap(before, above);
        std::swap(above, row);
    }
    return above[b.size()];
}

} // namespace

std::string_view nearest_word(std::string_view typed, std::span<const std::string_view> words) {
    std::string_view best;
    if (typed.empty() || typed.size() > max_word) return best;
    std::size_t least = std::max<std::size_t>(1, typed.size() / 3) + 1;
    for (const auto word : words) {
        const auto d = distance(typed, word);
        if (d >= least || d >= word.size()) continue;
        least = d;
        best = word;
    }
    return best;
}

std::string did_you_mean(std::string_view typed, std::span<const std::string_view> words) {
    const auto word = nearest_word(typed, words);
    return word.empty() ? std::string{} : "did you mean '" + std::string(word) + "'?";
}

std::string in_quotes(std::string_view text) {
    constexpr std::size_t limit = 60;
    std::string shown = "'";
    std::size_t end = std::min(limit, text.size());
    while (end < text.size() && end > 0 && is_utf8_continuation(text[end]))
        --end;
    for (const char c : text.substr(0, end))
        shown += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
    if (end < text.size()) shown += "...";
    return shown + "'";
}

std::string either(std::span<const std::string_view> words) {
    std::string text;
    for (std::size_t at = 0; at < words.size(); ++at) {
        if (at > 0) text += at + 1 == words.size() ? " or " : ", ";
        text += words[at];
    }
    return text;
}

} // namespace affinityd::policy
