// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace affinityd::host {

/// Ordinary files of the daemon (state, policies) and of users: absolute or working-directory paths, not
/// kernel trees.

enum class Links : bool { followed, refused };

/// The whole text; no value if there is no such file. Files above `limit` bytes and everything that is no
/// regular file are an Error, and so is a symbolic link where links are refused.
[[nodiscard]] Result<std::optional<std::string>>
read_file(const std::string& path, std::size_t limit = 1U << 20, Links links = Links::followed);

/// Replaces the file as one step (a random name beside it, rename): a reader, or this process killed at any
/// point, sees the old or the new text, whole. No fsync, which can hold up a loop for seconds: not for what
/// must outlive the machine.
[[nodiscard]] Result<void> replace_file(const std::string& path, std::string_view text, unsigned mode = 0644);

/// Why replace_file should not write there for a user who named the path: it is no regular file (a link, a
/// device, a FIFO), another user has put it into a folder that is open to all, or its folder cannot be
/// written. The question changes nothing.
[[nodiscard]] Result<void> check_replaceable(const std::string& path);

/// The directory with its parents; no Error if it exists.
[[nodiscard]] Result<void> make_directories(const std::string& path, unsigned mode = 0755);

/// An exclusive lock on `path` (created if needed) that lives as long as the descriptor: flock(2). No value
/// if another process holds it.
[[nodiscard]] Result<std::optional<Fd>> lock_file(const std::string& path);

/// Makes sure that only root (and this process's own user) can have put there, or can change, the object
/// at `path`: a file, or a folder with what is in it. Passes if the object, every folder on the way to it,
/// and every symbolic link on the way belongs to root or to this process's user, and no group and no others
/// can write to any of these. A folder on the way may be writable by all if it is sticky, as /tmp is: there
/// one user cannot replace another's entry. The end of a link counts like any other path.
///
/// An Error has a line for a person that says what is wrong with which component. A path that is not there
/// passes, and so does the null device, which stands for an empty file.
[[nodiscard]] Result<void> check_ownership(const std::string& path);

/// The same of a file alone, in a folder that was checked: thousands may be there. A link is an Error.
[[nodiscard]] Result<void> check_entry(const std::string& path);

} // namespace affinityd::host
