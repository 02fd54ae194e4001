// SPDX-License-Identifier: Apache-2.0
#include "policy/diagnostic.hpp"

#include "base/escape.hpp"

#include <algorithm>
#include <cstddef>

namespace affinityd::policy {

namespace {

constexpr std::size_t max_shown = 160; // bytes of a source line; a file may be one line of a hundred thousand

/// What a terminal would act upon is shown escaped; a tab stays, so that the line looks as in the editor.
std::string shown(std::string_view character) {
    return character == "\t" ? std::string(character) : escaped(character);
}

/// `at`, or the beginning of the character that it is in.
std::size_t character_at(std::string_view line, std::size_t at) {
    for (std::size_t back = 0; back < 4 && back <= at && at < line.size(); ++back)
        if (first_character(line.substr(at - back)).bytes > back) return at - back;
    return at;
}

/// The line and a second one with '^' below the offending bytes, one per character as it is shown.
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
        const auto as_shown = shown(character);
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

std::string_view to_string(Severity severity) {
    switch (severity) {
    case Severity::note:
        return "note";
    case Severity::warning:
        return "warning";
    case Severity::error:
        break;
    }
    return "error";
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
