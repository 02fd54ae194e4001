// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace affinityd {

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

} // namespace affinityd
