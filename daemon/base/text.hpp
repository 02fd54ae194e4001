// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd {

/// An ASCII digit, whatever the locale.
[[nodiscard]] constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Without spaces, tabs, line ends and NUL bytes at both ends (kernel files end in "\n", some recordings in
/// NUL).
[[nodiscard]] std::string_view trim_text(std::string_view text);

/// The parts between the separators, empty parts included; "" gives one empty part.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);
template <std::same_as<std::string> Temporary> // which its parts would outlive
std::vector<std::string_view> split(Temporary&& text, char separator) = delete;

/// The words between runs of spaces and tabs.
[[nodiscard]] std::vector<std::string_view> split_words(std::string_view text);
template <std::same_as<std::string> Temporary>
std::vector<std::string_view> split_words(Temporary&& text) = delete;

/// The whole text as a decimal number in T's range; no value if the text is anything else.
template <std::integral T>
[[nodiscard]] std::optional<T> parse_number(std::string_view text) {
    T value{};
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// A time as people write it in settings and policies: "30" and "30s" are seconds, "500ms", "0.3s", "5m",
/// "2h", "1d". No value for anything else, and for more than 86,400 of a unit.
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

/// The same the other way round, in the largest unit that divides it: "2s", "500ms", "0".
[[nodiscard]] std::string to_text(std::chrono::milliseconds time);

/// Length of the PCI function ("0000:41:00.0", domains of four to eight digits) that the text starts with; 0
/// if it starts with none. Source: drivers/pci/probe.c, pci_setup_device: "%04x:%02x:%02x.%d".
[[nodiscard]] constexpr std::size_t pci_name_length(std::string_view text) {
    const auto hex_run = [&](std::size_t from) {
        std::size_t at = from;
        while (at < text.size() &&
               ((text[at] >= '0' && text[at] <= '9') || (text[at] >= 'a' && text[at] <= 'f') ||
                (text[at] >= 'A' && text[at] <= 'F')))
            ++at;
        return at - from;
    };
    const std::size_t domain = hex_run(0);
    if (domain < 4 || domain > 8 || text.size() < domain + 8) return 0;
    if (text[domain] != ':' || hex_run(domain + 1) != 2 || text[domain + 3] != ':') return 0;
    if (hex_run(domain + 4) != 2 || text[domain + 6] != '.') return 0;
    const char function = text[domain + 7];
    return function >= '0' && function <= '7' ? domain + 8 : 0;
}

/// True if the text is a PCI function and nothing else.
[[nodiscard]] constexpr bool is_pci_name(std::string_view text) {
    return !text.empty() && pci_name_length(text) == text.size();
}

/// FNV-1a. For what is kept on disk and compared by later versions, unlike std::hash; against accidents, not
/// against an attacker. Source: draft-eastlake-fnv.
[[nodiscard]] constexpr std::uint64_t fnv1a_64(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    for (const char byte : text)
        hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
    return hash;
}

/// "1 process", "3 processes".
[[nodiscard]] inline std::string counted(std::uint64_t number, std::string_view one, std::string_view many) {
    return std::to_string(number) + " " + std::string(number == 1 ? one : many);
}

/// The same for a noun that takes an s.
[[nodiscard]] inline std::string counted(std::uint64_t number, std::string_view noun) {
    return counted(number, noun, std::string(noun) + "s");
}

/// "2,311"
[[nodiscard]] inline std::string grouped(std::uint64_t value) {
    auto text = std::to_string(value);
    for (auto at = text.size(); at > 3; text.insert(at, 1, ','))
        at -= 3;
    return text;
}

} // namespace affinityd
