// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/present/page.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <clocale>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <langinfo.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace affinityctl {

namespace {

/// Hangul Jamo, and what comes after punctuation, arrows and mathematical signs.
bool may_be_wide(unsigned character) {
    return (character >= 0x1100 && character < 0x1200) || character >= 0x2300;
}

/// The character at `at`, which is moved behind it. The text is UTF-8.
unsigned next_character(std::string_view text, std::size_t& at) {
    const auto lead = static_cast<unsigned char>(text[at++]);
    unsigned value = lead < 0x80 ? lead : lead < 0xe0 ? lead & 0x1fU : lead < 0xf0 ? lead & 0xfU : lead & 7U;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0U) == 0x80)
        value = value << 6U | (static_cast<unsigned char>(text[at++]) & 0x3fU);
    return value;
}

/// Where a part of at most `columns` ends.
std::size_t end_of(std::string_view text, std::size_t columns) {
    for (std::size_t at = 0, used = 0; at < text.size();) {
        std::size_t next = at;
        used += may_be_wide(next_character(text, next)) ? 2 : 1;
        if (used > columns) return at;
        at = next;
    }
    return text.size();
}

std::size_t number_in(const char* text) {
    std::size_t value = 0;
    if (text != nullptr) std::from_chars(text, text + std::strlen(text), value);
    return value;
}

} // namespace

Page Page::of_output(bool color, bool by_columns) {
    std::setlocale(LC_CTYPE, "");
    Page page{.color = color, .unicode = std::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0};
    winsize size{};
    const bool is_terminal = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    page.width = is_terminal ? size.ws_col : 0;
    if (page.width == 0 && by_columns) page.width = number_in(std::getenv("COLUMNS"));
    return page;
}

std::size_t columns_of(std::string_view text) {
    std::size_t columns = 0;
    for (std::size_t at = 0; at < text.size();)
        columns += may_be_wide(next_character(text, at)) ? 2 : 1;
    return columns;
}

std::string cut(std::string_view text, std::size_t columns, const Page& page) {
    if (columns_of(text) <= columns) return std::string(text);
    const std::string_view mark = page.unicode ? "\u2026" : "~";
    return std::string(text.substr(0, end_of(text, std::max<std::size_t>(columns, 1) - 1))).append(mark);
}

std::string wrapped(std::string_view text, std::string_view first, const Page& page) {
    const auto indent = columns_of(first);
    const auto room = page.width > indent + 1 ? page.width - indent : page.width == 0 ? text.size() + 1 : 1;
    std::string lines;
    std::string_view before = first;
    const std::string rest(indent, ' ');
    do {
        auto end = end_of(text, room);
        if (const auto stop = text.substr(0, end).find('\n'); stop != std::string_view::npos)
            end = stop;
        else if (end < text.size() && text[end] != ' ')
            if (const auto space = text.substr(0, end).rfind(' '); space != std::string_view::npos)
                end = space;
        lines.append(before).append(text.substr(0, end)).append("\n");
        text.remove_prefix(end);
        if (!text.empty() && (text.front() == ' ' || text.front() == '\n')) text.remove_prefix(1);
        before = rest;
    } while (!text.empty());
    return lines;
}

using std::chrono::system_clock;

std::optional<WallTime> time_in(const nlohmann::json& value) {
    if (value.is_number_unsigned()) return system_clock::from_time_t(value.get<std::time_t>());
    if (!value.is_string()) return std::nullopt;
    tm parts{};
    const auto* end = ::strptime(value.get_ref<const std::string&>().c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
    if (end == nullptr || *end != '\0') return std::nullopt;
    return system_clock::from_time_t(::timegm(&parts));
}

std::string age_of(WallTime then, WallTime now) {
    constexpr std::int64_t minute = 60, hour = 60 * minute, day = 24 * hour;
    const auto seconds =
        std::max<std::int64_t>(0, std::chrono::duration_cast<std::chrono::seconds>(now - then).count());
    const auto whole = [&](std::int64_t unit) { return static_cast<std::uint64_t>(seconds / unit); };
    if (seconds < 2 * minute) return std::to_string(seconds) + " s";
    if (seconds < 2 * hour) return std::to_string(whole(minute)) + " min";
    if (seconds < 2 * day) return std::to_string(whole(hour)) + " h";
    return affinityd::counted(whole(day), "day");
}

std::string local_time(long long seconds) {
    const auto time = static_cast<std::time_t>(seconds);
    tm parts{};
    ::localtime_r(&time, &parts);
    std::array<char, 40> text{};
    return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts)};
}

} // namespace affinityctl
