// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace affinityd {

/// FNV-1a. For what is kept on disk and compared by later versions, unlike std::hash; against accidents, not
/// against an attacker. Source: draft-eastlake-fnv.
[[nodiscard]] constexpr std::uint64_t fnv1a_64(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325ULL;
    for (const char byte : text)
        hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
    return hash;
}

[[nodiscard]] constexpr std::uint32_t fnv1a_32(std::string_view text) {
    std::uint32_t hash = 2166136261U;
    for (const char byte : text)
        hash = (hash ^ static_cast<unsigned char>(byte)) * 16777619U;
    return hash;
}

} // namespace affinityd
