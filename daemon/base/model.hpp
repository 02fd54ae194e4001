// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace affinityd {

/// The affinity models of Foong, Fung and Newell, "User-directed Processor Affinity": what is bound to CPUs.
enum class Model { none, irq, process, full };

/// As policies and reports write it: "none", "irq", "process", "full".
[[nodiscard]] constexpr std::string_view to_string(Model model) {
    constexpr std::array<std::string_view, 4> names{"none", "irq", "process", "full"};
    return names[static_cast<std::size_t>(model)];
}

} // namespace affinityd
