// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <string>

namespace affinityd::host {

/// Makes sure that nobody but root (and this process's own user) can have put there, or can change, what is
/// at `path`: a file, or a folder with what is in it. That holds if it, every folder on the way to it, and
/// every symbolic link on the way belongs to root or to this process's user, and none can be written to by
/// its group or by others. A folder on the way may be writable by all if it is sticky, as /tmp is: there one
/// user cannot replace another's entry. The end of a link counts like any other path.
///
/// An Error has a line for a person that says what is wrong with which component. What is not there passes,
/// and so does the null device, which stands for an empty file.
[[nodiscard]] Result<void> check_ownership(const std::string& path);

/// The same of a file alone, in a folder that was checked: thousands may be there. A link is an Error.
[[nodiscard]] Result<void> check_entry(const std::string& path);

/// Makes sure of the links only: that every symbolic link on the way to `path`, and at its end, belongs to
/// root or to this process's user.
[[nodiscard]] Result<void> check_links(const std::string& path);

} // namespace affinityd::host
