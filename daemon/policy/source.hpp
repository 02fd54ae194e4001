// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::policy {

/// A text by lines; lines and columns count from 1, columns in bytes. Refers to the text, which must live as
/// long.
class Source {
  public:
    explicit Source(std::string_view text);

    [[nodiscard]] std::string_view
    line(unsigned number) const; ///< without its line end; "" if it has no such line
    /// The text from a place to the end of its line.
    [[nodiscard]] std::string_view from(unsigned line, unsigned column) const;
    [[nodiscard]] unsigned lines() const { return static_cast<unsigned>(starts_.size()); }

  private:
    std::string_view text_;
    std::vector<std::size_t> starts_;
};

/// A byte that a policy file may not hold, and what to say about it.
struct BadByte {
    std::size_t offset = 0;
    std::string message;
};

/// First byte that is no UTF-8, or a character that would make the file look other than it is: control
/// characters (but tabs and line ends) and marks that reverse the direction of writing.
[[nodiscard]] std::optional<BadByte> find_bad_byte(std::string_view text);

} // namespace affinityd::policy
