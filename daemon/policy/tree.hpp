// SPDX-License-Identifier: Apache-2.0
#pragma once

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

/// Why a text is no document of the language, before any key is looked at.
struct TreeFault {
    unsigned line = 1;
    unsigned column = 1;
    unsigned length = 1;
    std::string message;
    std::string hint;
};

/// Bounds for hostile text; a policy that a person writes stays far below them.
inline constexpr std::size_t max_document_bytes = std::size_t{256} << 10;
inline constexpr std::size_t max_tree_nodes = 20'000;
inline constexpr std::size_t max_tree_depth = 16;

/// Reads one document. Refused, with the place: bytes that are no UTF-8, control characters, tags, anchors
/// and aliases, a second document, keys that are no scalars, and whatever exceeds the bounds. A text without
/// content gives a null.
[[nodiscard]] std::expected<Node, TreeFault> parse_tree(std::string_view text);

} // namespace affinityd::policy
