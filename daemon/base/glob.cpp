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

/// The first element of the pattern.
std::string_view first_element(std::string_view pattern) {
    std::size_t length = 1;
    if (pattern.front() == '\\' && pattern.size() > 1) length = 2;
    if (pattern.front() == '[') length = std::max(length, bracket_length(pattern));
    return pattern.substr(0, length);
}

bool matches(std::string_view element, char c) {
    if (element.size() == 1) return element.front() == '?' || element.front() == c;
    return element.front() == '[' ? bracket_contains(element, c) : element[1] == c;
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
            if (const auto element = first_element(pattern.substr(p)); matches(element, text[t])) {
                p += element.size();
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
        at += first_element(pattern.substr(at)).size();
    }
    return bytes;
}

std::string_view glob_beginning(std::string_view pattern, std::size_t length) {
    std::size_t at = 0;
    for (std::size_t bytes = 0; bytes < length; ++bytes) {
        if (at >= pattern.size() || pattern[at] == '*') return {};
        at += first_element(pattern.substr(at)).size();
    }
    return pattern.substr(0, at);
}

bool is_literal_glob(std::string_view pattern) { return pattern.find_first_of("*?[\\") == none; }

} // namespace affinityd
