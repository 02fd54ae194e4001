// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/diagnostic.hpp"

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::policy {

/// A YAML document as plain values with positions; the library that made it is known to tree.cpp only.
struct Node {
    enum class Kind { null, scalar, list, map };
    Kind kind = Kind::null;
    std::string text;     ///< of a scalar
    unsigned line = 0;    ///< from 1; of a null the place may be that of what follows
    unsigned column = 0;  ///< in bytes, from 1
    bool plain = false;   ///< a scalar without quotes
    bool one_line = true; ///< a scalar that begins and ends in one line, and is no block ("|", ">")
    std::vector<Node>
        items; ///< list: the elements; map: key, value, key, value... in the file's order, repeated keys kept
};

/// Bounds for hostile text; a policy that a person writes stays far below them.
inline constexpr std::size_t max_document_bytes = std::size_t{256} << 10;
inline constexpr std::size_t max_tree_nodes = 20'000;
inline constexpr std::size_t max_tree_depth = 16;

/// Reads one document. Refused, with the place: bytes that are no UTF-8, control characters, tags, anchors
/// and aliases, a second document, keys that are no scalars, and whatever exceeds the bounds. A text without
/// content gives a null. The fault names no file.
[[nodiscard]] std::expected<Node, Diagnostic> parse_tree(std::string_view text);

} // namespace affinityd::policy
