// SPDX-License-Identifier: Apache-2.0
#include "policy/diagnostic.hpp"

#include "base/utf8.hpp"

#include <algorithm>
#include <cstddef>

namespace affinityd::policy {

namespace {

constexpr std::size_t max_shown = 160; // bytes of a source line; a file may be one line of a hundred thousand

/// What a terminal would act upon is shown as '?'; a tab stays, so that the line looks as in the editor.
char shown(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7F ? '?' : c;
}

/// The line and a second one with '^' below the offending bytes, one per character.
std::string underline(const Diagnostic& diagnostic) {
    const std::string_view line = diagnostic.source_line;
    const std::size_t column =
        std::min<std::size_t>(diagnostic.at.column > 0 ? diagnostic.at.column - 1 : 0, line.size());
    std::size_t begin = column > max_shown / 2 && line.size() > max_shown ? column - max_shown / 2 : 0;
    while (begin > 0 && is_utf8_continuation(line[begin]))
        --begin;
    std::size_t end = std::min(line.size(), begin + max_shown);
    while (end < line.size() && is_utf8_continuation(line[end]))
        ++end;
    std::string text = "    ";
    std::string marks = "    ";
    const std::size_t length = std::max(1U, diagnostic.length);
    for (std::size_t at = begin; at < end; ++at) {
        text += shown(line[at]);
        if (at > begin && is_utf8_continuation(line[at])) continue;
        if (at < column)
            marks += line[at] == '\t' ? '\t' : ' ';
        else if (at - column < length)
            marks += '^';
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
    std::string text = diagnostic.at.file;
    if (diagnostic.at.line > 0) {
        text += ':' + std::to_string(diagnostic.at.line);
        if (diagnostic.at.column > 0) text += ':' + std::to_string(diagnostic.at.column);
    }
    if (!text.empty()) text += ": ";
    text += to_string(diagnostic.severity);
    text += ": " + diagnostic.message;
    if (!diagnostic.hint.empty()) text += " (" + diagnostic.hint + ")";
    if (source && !diagnostic.source_line.empty()) text += "\n" + underline(diagnostic);
    return text;
}

} // namespace affinityd::policy
