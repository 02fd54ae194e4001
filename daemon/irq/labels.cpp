// SPDX-License-Identifier: Apache-2.0
#include "irq/labels.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace affinityd::irq {

namespace {

constexpr std::size_t max_label = 256;         ///< kernel buffers are far shorter; bounds hostile text
constexpr std::size_t max_interface_name = 15; ///< IFNAMSIZ - 1
constexpr std::array<std::string_view, 8> slots = {"IF", "NIC", "PCI", "VIRTIO", "PLATFORM", "N", "T", "X"};

bool is_alnum(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::size_t digits(std::string_view text) {
    return std::min(text.find_first_not_of("0123456789"), text.size());
}

/// Matches a pattern from left to right. Only an interface's name can end at more than one place, and a
/// pattern has at most one, so trying each of its lengths is the whole search.
class Matcher {
  public:
    Matcher(const std::vector<std::string>& known, bool any_name) : known_(known), any_name_(any_name) {}

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
            if (slot == "IF" || slot == "NIC") return interface(slot == "NIC" && !any_name_, pattern, text);
            const auto length = fill(slot, text);
            if (length == 0) return false;
            text.remove_prefix(length);
        }
        return text.empty();
    }

    Label label;

  private:
    [[nodiscard]] bool is_known(std::string_view name) const {
        return std::ranges::find(known_, name) != known_.end();
    }

    bool interface(bool known_only, std::string_view pattern, std::string_view text) {
        for (auto length = std::min({text.size(), text.find_first_of(" /:\t"), max_interface_name});
             length > 0; --length) {
            const auto name = text.substr(0, length);
            if (!run(pattern, text.substr(length))) continue;
            if (known_only && !looks_like_interface(name) && !is_known(name)) continue;
            label.device = name;
            return true;
        }
        return false;
    }

    /// "15100000.ethernet", or another name that is known.
    [[nodiscard]] std::size_t platform(std::string_view text) const {
        constexpr std::string_view word = ".ethernet";
        const auto address = std::min(text.find_first_not_of("0123456789abcdef"), text.size());
        if (address > 0 && text.substr(address).starts_with(word)) return address + word.size();
        std::size_t longest = 0;
        for (const auto& name : known_) // an interface's has none of these
            if (name.size() > longest && name.find_first_of(".:") != std::string::npos &&
                text.starts_with(name))
                longest = name.size();
        return longest;
    }

    /// Reads one value that is not an interface's name; its length, 0 if it is not there.
    std::size_t fill(std::string_view slot, std::string_view text) {
        if (slot == "PCI") {
            const auto length = pci_name_length(text);
            label.pci = text.substr(0, length);
            return length;
        }
        if (slot == "VIRTIO") {
            constexpr std::string_view word = "virtio";
            const auto number = text.starts_with(word) ? digits(text.substr(word.size())) : 0;
            if (number == 0) return 0;
            label.virtio = text.substr(0, word.size() + number);
            return word.size() + number;
        }
        if (slot == "PLATFORM") {
            const auto length = platform(text);
            label.platform = text.substr(0, length);
            return length;
        }
        const auto length = digits(text);
        const auto value = parse_number<unsigned>(text.substr(0, length));
        if (!value || *value > 0xffff) return 0; // no device has more queues
        if (slot == "N") label.queue = *value;
        if (slot == "T") label.tx_queue = *value;
        return length;
    }

    const std::vector<std::string>& known_;
    bool any_name_;
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

std::optional<PatternFault> LabelTable::check(std::string_view label) {
    if (label.empty()) return PatternFault{0, 1, "the pattern is empty"};
    if (label.size() > max_pattern) return PatternFault{max_pattern, 1, "the pattern is too long"};
    std::vector<std::string_view> seen;
    bool has_name = false;
    for (std::size_t at = 0; at < label.size(); ++at) {
        if (label[at] == '}') return PatternFault{at, 1, "'}' without a '{' before it"};
        if (label[at] != '{') continue;
        const auto close = std::min(label.find('}', at), label.size());
        const auto slot = label.substr(at + 1, close - at - 1);
        const auto length = std::min(close + 1, label.size()) - at;
        if (close == label.size()) return PatternFault{at, length, "'{' without a '}' after it"};
        if (std::ranges::find(slots, slot) == slots.end())
            return PatternFault{at, length,
                                "no such placeholder: there are {IF}, {NIC}, {PCI}, {VIRTIO}, {PLATFORM}, "
                                "{N}, {T} and {X}"};
        const bool is_name = slot == "IF" || slot == "NIC";
        if (std::ranges::find(seen, slot) != seen.end() || (is_name && std::exchange(has_name, true)))
            return PatternFault{at, length, "a label has one of each, and one interface's name"};
        if (slot != "X") seen.push_back(slot);
        at = close;
    }
    return std::nullopt;
}

std::optional<LabelMatch> LabelTable::match(std::string_view action, const std::vector<std::string>& known,
                                            std::string_view driver, bool any_name) const {
    if (action.empty() || action.size() > max_label) return std::nullopt;
    for (const auto& pattern : patterns_) {
        if (pattern.only && pattern.driver != driver) continue;
        Matcher matcher(known, any_name);
        if (!matcher.run(pattern.label, action)) continue;
        LabelMatch match{&pattern, std::move(matcher.label)};
        match.label.driver = pattern.driver;
        match.label.is_nic = pattern.is_sure;
        match.label.kind = pattern.is_sure ? pattern.kind : Kind::none;
        return match;
    }
    return std::nullopt;
}

} // namespace affinityd::irq
