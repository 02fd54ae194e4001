// SPDX-License-Identifier: Apache-2.0
#include "policy/diagnostic.hpp"

#include "base/escape.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>
#include <vector>

namespace affinityd::policy {

namespace {

constexpr std::size_t max_word = 40;   // a longer word is no typo of a key
constexpr std::size_t max_shown = 160; // bytes of a source line; a file may be one line of a hundred thousand

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c == '-' ? '_' : c; }

/// Number of letters to insert, remove, replace or swap with their neighbour.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
    std::iota(above.begin(), above.end(), 0U);
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

/// `at`, or the beginning of the character that it is in.
std::size_t character_at(std::string_view line, std::size_t at) {
    for (std::size_t back = 0; back < 4 && back <= at && at < line.size(); ++back)
        if (first_character(line.substr(at - back)).bytes > back) return at - back;
    return at;
}

/// The line and a second one with '^' below the offending bytes, one per character as it is shown. Characters
/// that a terminal would act upon are escaped, but for a tab, so that the line looks as in the editor.
std::string underline(const Diagnostic& diagnostic) {
    const std::string_view line = diagnostic.source_line;
    const std::size_t column =
        std::min<std::size_t>(diagnostic.at.column > 0 ? diagnostic.at.column - 1 : 0, line.size());
    const std::size_t begin =
        column > max_shown / 2 && line.size() > max_shown ? character_at(line, column - max_shown / 2) : 0;
    const std::size_t end = std::min(line.size(), begin + max_shown);
    std::string text = "    ";
    std::string marks = "    ";
    const std::size_t length = std::max(1U, diagnostic.length);
    for (std::size_t at = begin; at < end;) {
        const auto bytes = std::max<std::size_t>(first_character(line.substr(at)).bytes, 1);
        const auto character = line.substr(at, bytes);
        const auto as_shown = character == "\t" ? "\t" : escaped(character);
        const std::size_t width = as_shown == character ? 1 : as_shown.size(); // an escape is plain ASCII
        text += as_shown;
        if (at < column)
            marks += character == "\t" ? "\t" : std::string(width, ' ');
        else if (at - column < length)
            marks += std::string(width, '^');
        at += bytes;
    }
    if (column >= end) marks += '^';
    return text + "\n" + marks;
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

std::string_view to_string(Severity severity) {
    constexpr std::array<std::string_view, 3> names{"note", "warning", "error"};
    return names[static_cast<std::size_t>(severity)];
}

std::string to_string(const Diagnostic& diagnostic, bool source) {
    std::string text = escaped(diagnostic.at.file);
    if (diagnostic.at.line > 0) {
        text += ':' + std::to_string(diagnostic.at.line);
        if (diagnostic.at.column > 0) text += ':' + std::to_string(diagnostic.at.column);
    }
    if (!text.empty()) text += ": ";
    text += to_string(diagnostic.severity);
    text += ": " + escaped(diagnostic.message);
    if (!diagnostic.hint.empty()) text += " (" + escaped(diagnostic.hint) + ")";
    if (source && !diagnostic.source_line.empty()) text += "\n" + underline(diagnostic);
    return text;
}

} // namespace affinityd::policy
