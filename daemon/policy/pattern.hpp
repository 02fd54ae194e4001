// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace affinityd::policy {

inline constexpr std::size_t longest_task_name = 15; ///< TASK_COMM_LEN - 1, include/linux/sched.h

/// A glob over the whole text, or "/regex/" found anywhere in it. Both take time linear in the text, whatever
/// the pattern (RE2, not backtracking): the texts are names that any process may choose. A value, cheap to
/// copy.
class Pattern {
  public:
    /// "nginx*" or "/^nginx: worker/"; an Error says what is wrong with a regular expression.
    static Result<Pattern> parse(std::string_view text);
    /// True for "/regex/".
    [[nodiscard]] static bool is_expression(std::string_view text);

    /// The same for names of tasks, of which the kernel keeps 15 bytes: a glob whose texts are all longer
    /// also matches their first 15 bytes, where it has no '*' among these.
    [[nodiscard]] Pattern of_name() const;

    [[nodiscard]] bool matches(std::string_view text) const;
    [[nodiscard]] const std::string& text() const { return text_; } ///< as written
    [[nodiscard]] const std::string& kept() const { return kept_; } ///< of_name(): those 15 bytes; "": none
    /// A glob that matches no text of the length of a task's name.
    [[nodiscard]] bool is_too_long() const;
    [[nodiscard]] bool is_literal() const; ///< matches one text only, and kept()
    friend bool operator==(const Pattern& a, const Pattern& b) { return a.text_ == b.text_; }

  private:
    std::string text_;
    std::string kept_;                      ///< a glob
    std::shared_ptr<const re2::RE2> regex_; ///< null: a glob
};

/// The patterns of one file. A regular expression takes up to a millisecond to compile: equal ones are
/// compiled once, and there are at most `most_expressions`, good or not.
class FilePatterns {
  public:
    static constexpr std::size_t most_expressions = 256;
    /// As Pattern::parse(); an Error also says that there are too many.
    Result<Pattern> parse(std::string_view text);

  private:
    std::map<std::string, Result<Pattern>, std::less<>> expressions_;
};

} // namespace affinityd::policy
