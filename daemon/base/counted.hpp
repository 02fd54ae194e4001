// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace affinityd {

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
