// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/root.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

namespace affinityd::inventory {

/// The entries of a directory that are plain numbers (processes, threads, open descriptors), one at a time in
/// the directory's order and in fixed memory, so that a listing of a hundred thousand can be interrupted and
/// resumed.
class NumberedEntries {
  public:
    /// `path` below `parent`; an Error if it cannot be opened.
    static Result<NumberedEntries> open(const host::Dir& parent, const std::string& path);

    /// The next number; no value at the end. A directory whose process leaves meanwhile ends early. An
    /// Error: the listing broke off, so what came so far is not all.
    Result<std::optional<int>> next();
    /// From the start again, with what has come since.
    void rewind();
    [[nodiscard]] const host::Dir& dir() const { return dir_; }

  private:
    using Buffer = std::array<char, 4096>; ///< filled by getdents64(2)
    explicit NumberedEntries(host::Dir dir)
        : dir_(std::move(dir)), buffer_(std::make_unique_for_overwrite<Buffer>()) {}
    Result<bool> fill();

    host::Dir dir_;
    std::size_t at_ = 0;
    std::size_t filled_ = 0;
    std::unique_ptr<Buffer> buffer_;
};

} // namespace affinityd::inventory
