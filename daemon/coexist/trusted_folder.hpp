// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::coexist {

/// A folder that nobody but root (or this process's own user) can have put where it is. On the way to it
/// every component is opened by itself, is no symbolic link, belongs to root or to this user, and is not
/// writable by anybody else. An ancestor may be writable by all if it is sticky, as /tmp is: there the entry
/// of one user cannot be replaced by another. Nothing beyond the first component that fails is touched.
class TrustedFolder {
  public:
    /// `path` begins with '/' and is looked up below `top`, the root folder of a machine; `top` itself is
    /// trusted. An Error names the component that is not to be trusted. Paths with an empty component, with
    /// ".", "..", control characters or more than 4,095 bytes are not tried.
    static Result<TrustedFolder> open(const std::string& top, std::string_view path);

    /// A regular file in the folder, for reading, that belongs to root or to this user and that nobody else
    /// can write to. No value: there is no such file. Never waits, whatever is there.
    [[nodiscard]] Result<std::optional<host::Fd>> open_file(const std::string& name) const;
    /// Names in the folder, at most `most` of them, in no order.
    [[nodiscard]] std::vector<std::string> list(std::size_t most) const;

  private:
    explicit TrustedFolder(host::Fd fd) : fd_(std::move(fd)) {}
    host::Fd fd_;
};

} // namespace affinityd::coexist
