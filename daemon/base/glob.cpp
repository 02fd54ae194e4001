// SPDX-License-Identifier: Apache-2.0
#include "base/glob.hpp"

#include <algorithm>
#include <cstddef>

namespace affinityd {

namespace {

constexpr auto none = std::string_view::npos;

/// Length of the bracket expression at the front of the pattern, 0 if it is not closed.
std::size_t bracket_length(std::string_view pattern) {
    std::size_t at = 1;
    if (at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^')) ++at;
    const auto end = pattern.find(']', at + 1); // a ']' right at the start is a member
    return end == none ? 0 : end + 1;
}

bool bracket_contains(std::string_view bracket, char c) {
    std::string_view members = bracket.substr(1, bracket.size() - 2);
    const bool negated = members.front() == '!' || members.front() == '^';
    if (negated) members.remove_prefix(1);
    bool found = false;
    for (std::size_t i = 0; i < members.size(); ++i) {
        const auto low = static_cast<unsigned char>(members[i]);
        auto high = low;
        if (i + 2 < members.size() && members[i + 1] == '-') {
            high = static_cast<unsigned char>(members[i + 2]);
            i += 2;
        }
        const auto value = static_cast<unsigned char>(c);
        found = found || (low <= value && value <= high);
    }
    return found != negated;
}

/// How many pattern characters the first element takes.
std::size_t element_length(std::string_view pattern) {
    if (pattern.front() == '\\' && pattern.size() > 1) return 2;
    return pattern.front() == '[' ? std::max<std::size_t>(1, bracket_length(pattern)) : 1;
}

/// How many pattern characters the first element takes if it matches c; 0 if it does not match.
std::size_t match_one(std::string_view pattern, char c) {
    switch (pattern.front()) {
    case '?':
        return 1;
    case '\\':
        if (pattern.size() > 1) return pattern[1] == c ? 2 : 0;
        return c == '\\' ? 1 : 0;
    case '[':
        if (const auto length = bracket_length(pattern); length > 0)
            return bracket_contains(pattern.substr(0, length), c) ? length : 0;
        return c == '[' ? 1 : 0;
    default:
        return pattern.front() == c ? 1 : 0;
    }
}

} // namespace

bool glob_match(std::string_view pattern, std::string_view text) {
    std::size_t p = 0;
    std::size_t t = 0;
    std::size_t star = none; // pattern position after the last '*'
    std::size_t retry = 0;   // text position where that star's tail is tried next
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = ++p;
            retry = t;
            continue;
        }
        if (p < pattern.size()) {
            if (const auto taken = match_one(pattern.substr(p), text[t]); taken > 0) {
                p += taken;
                ++t;
                continue;
            }
        }
        if (star == none) return false;
        p = star;
        t = ++retry;
    }
    while (p < pattern.size() && pattern[p] == '*')
        ++p;
    return p == pattern.size();
}

std::size_t shortest_match(std::string_view pattern) {
    std::size_t bytes = 0;
    for (std::size_t at = 0; at < pattern.size();) {
        bytes += pattern[at] == '*' ? 0 : 1;
        at += element_length(pattern.substr(at));
    }
    return bytes;
}

std::string_view glob_beginning(std::string_view pattern, std::size_t length) {
    std::size_t at = 0;
    for (std::size_t bytes = 0; bytes < length; ++bytes) {
        if (at >= pattern.size() || pattern[at] == '*') return {};
        at += element_length(pattern.substr(at));
    }
    return pattern.substr(0, at);
}

bool is_literal_glob(std::string_view pattern) { return pattern.find_first_of("*?[\\") == none; }

} // namespace affinityd
