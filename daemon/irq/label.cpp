// SPDX-License-Identifier: Apache-2.0
#include "irq/label.hpp"

#include "base/pci_name.hpp"
#include "base/text.hpp"
#include "irq/reader.hpp"

#include <algorithm>
#include <array>

namespace affinityd::irq {

namespace {

constexpr std::size_t max_label = 256;         ///< kernel buffers are far shorter; bounds hostile text
constexpr std::size_t max_interface_name = 15; ///< IFNAMSIZ - 1

bool is_alnum(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::size_t digits(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size() && is_digit(text[at]))
        ++at;
    return at;
}

/// Matches a pattern from left to right. Only an interface name can end at more than one place; it comes
/// first or after a literal, and at most once, so trying each of its lengths is the whole search.
class Matcher {
  public:
    explicit Matcher(const std::vector<std::string>& interfaces) : interfaces_(interfaces) {}

    bool run(std::string_view pattern, std::string_view text) {
        while (!pattern.empty()) {
            if (pattern.front() != '{') {
                if (text.empty() || lower(text.front()) != lower(pattern.front())) return false;
                pattern.remove_prefix(1);
                text.remove_prefix(1);
                continue;
            }
            const auto close = pattern.find('}');
            const auto slot = pattern.substr(1, close - 1);
            pattern.remove_prefix(close + 1);
            if (slot == "if" || slot == "nic") return interface(slot == "nic", pattern, text);
            const auto length = fill(slot, text);
            if (length == 0) return false;
            text.remove_prefix(length);
        }
        return text.empty();
    }

    Label label;

  private:
    bool interface(bool known_only, std::string_view pattern, std::string_view text) {
        const auto end = text.find_first_of(" /:\t");
        const auto longest =
            std::min({text.size(), end == std::string_view::npos ? text.size() : end, max_interface_name});
        for (std::size_t length = longest; length > 0; --length) {
            const auto name = text.substr(0, length);
            if (known_only && !looks_like_interface(name) &&
                std::ranges::find(interfaces_, name) == interfaces_.end())
                continue;
            if (!run(pattern, text.substr(length))) continue;
            label.device = name;
            return true;
        }
        return false;
    }

    /// Reads one value that is not an interface's name; its length, 0 if it is not there.
    std::size_t fill(std::string_view slot, std::string_view text) {
        if (slot == "pci") {
            const auto length = pci_name_length(text);
            label.pci = text.substr(0, length);
            return length;
        }
        if (slot == "virtio") {
            constexpr std::string_view word = "virtio";
            if (!text.starts_with(word)) return 0;
            const auto length = digits(text.substr(word.size()));
            if (length == 0) return 0;
            label.virtio = text.substr(0, word.size() + length);
            return word.size() + length;
        }
        if (slot == "soc") {
            const auto address = text.find_first_not_of("0123456789abcdef");
            constexpr std::string_view word = ".ethernet";
            if (address == 0 || address == std::string_view::npos || !text.substr(address).starts_with(word))
                return 0;
            label.platform = text.substr(0, address + word.size());
            return address + word.size();
        }
        const auto length = digits(text);
        const auto value = parse_number<unsigned>(text.substr(0, length));
        if (!value || *value > 0xffff) return 0; // no device has more queues
        if (slot == "q") label.queue = *value;
        if (slot == "t") label.tx_queue = *value;
        return length;
    }

    const std::vector<std::string>& interfaces_;
};

} // namespace

bool looks_like_interface(std::string_view name) {
    if (name.size() > max_interface_name || !std::ranges::any_of(name, is_digit)) return false;
    for (const std::string_view prefix : {"eth", "em", "lan", "wan", "net", "ib"}) {
        if (!name.starts_with(prefix)) continue;
        const auto rest = name.substr(prefix.size());
        if (digits(rest) == rest.size()) return true;
    }
    if (name.starts_with("p")) { // biosdevname: p2p1
        const auto slot = digits(name.substr(1));
        const auto rest = name.substr(1 + slot);
        return slot > 0 && rest.starts_with("p") && rest.size() > 1 &&
               digits(rest.substr(1)) == rest.size() - 1;
    }
    if (!name.starts_with("en") && !name.starts_with("ib")) return false;
    constexpr std::string_view kinds = "abcdiopPsuvx"; // the letters of the naming scheme
    return name.size() > 3 && kinds.find(name[2]) != std::string_view::npos &&
           std::ranges::all_of(name, is_alnum);
}

std::optional<LabelMatch> match_label(std::string_view action, const std::vector<std::string>& interfaces) {
    if (action.empty() || action.size() > max_label) return std::nullopt;
    for (const auto& pattern : label_patterns()) {
        Matcher matcher(interfaces);
        if (!matcher.run(pattern.pattern, action)) continue;
        LabelMatch match{&pattern, std::move(matcher.label)};
        match.label.driver = pattern.driver;
        match.label.is_nic = pattern.claim == LabelPattern::Claim::sure;
        match.label.kind = match.label.is_nic ? pattern.kind : Kind::none;
        return match;
    }
    return std::nullopt;
}

Label parse_label(std::string_view action) {
    auto match = match_label(action, {});
    return match ? std::move(match->label) : Label{};
}

} // namespace affinityd::irq
