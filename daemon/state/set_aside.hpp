// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <optional>
#include <string>

namespace affinityd::state {

/// A file of the undo journal as it was found.
struct Found {
    std::optional<std::string> text; ///< no value: there is none, or it could not be used
    std::optional<Error> fault;      ///< why it was put aside, and where
};

/// Reads a file of at most `largest` bytes. What stands in its place and cannot be read (a folder, a pipe, a
/// link, a larger file) is renamed to `path`.unreadable, or .unreadable-2 to -9 if that is taken, so that the
/// daemon can begin a new one. An Error: it cannot be put aside, or nothing is known of it (no descriptor was
/// left).
[[nodiscard]] Result<Found> read_or_set_aside(const std::string& path, std::size_t largest);

} // namespace affinityd::state
