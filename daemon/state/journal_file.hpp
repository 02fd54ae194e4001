// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace affinityd::state {

/// The file of the undo journal: lines that are appended with one write(2) each, and a rewrite of them beside
/// the file that takes its place when it is whole. Whatever a crash leaves, the lines before it count. No
/// fsync: the file need only survive the daemon, not the machine.
class JournalFile {
  public:
    /// With "" all changes succeed and nothing is written. The file is opened by replace() or use_as_it_is().
    explicit JournalFile(std::string path) : path_(std::move(path)) {}
    JournalFile(JournalFile&&) noexcept = default;
    JournalFile& operator=(JournalFile&&) noexcept = default;
    ~JournalFile();

    [[nodiscard]] bool is_memory_only() const { return path_.empty(); }
    [[nodiscard]] const std::string& path() const { return path_; }

    /// Makes `text` the whole file behind its header, as one step.
    [[nodiscard]] Result<void> replace(std::string_view text);
    /// Goes on with the file, which holds `text`.
    [[nodiscard]] Result<void> use_as_it_is(std::string_view text);

    /// Writes one whole line, also to a rewrite that is under way. After an error the file has no such
    /// record.
    [[nodiscard]] Result<void> append(const std::string& line);
    /// True if it has become so much larger than it was when it was last written as a whole that most of it
    /// must be history, however few lines that are.
    [[nodiscard]] bool is_bloated() const;
    /// False: somebody has removed the file, or cut it, or put another one in its place.
    [[nodiscard]] bool is_in_place() const;

    /// A rewrite: begun, fed with the lines of all records, finished. append() goes on meanwhile. If a step
    /// fails, there is no rewrite any more, and the old file stays in use.
    void begin_rewrite();
    [[nodiscard]] bool is_rewriting() const { return static_cast<bool>(rewrite_); }
    void add_to_rewrite(std::string_view text);
    void finish_rewrite();

  private:
    [[nodiscard]] std::string rewrite_path() const { return path_ + ".new"; }
    void give_up_rewrite();

    std::string path_;
    host::Fd file_;
    host::Fd rewrite_;
    std::size_t bytes_ = 0;       ///< that were written
    std::size_t whole_bytes_ = 0; ///< of them when the file was last written as a whole
    std::size_t rewritten_bytes_ = 0;
    bool torn_ = false; ///< the last write ended inside a line
};

} // namespace affinityd::state
