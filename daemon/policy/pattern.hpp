// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace affinityd::policy {

/// A glob over the whole text, or "/regex/" found anywhere in it. Both take time linear in the text, whatever
/// the pattern (RE2, not backtracking): the texts are names that any process may choose. A value, cheap to
/// copy.
class Pattern {
  public:
    /// "nginx*" or "/^nginx: worker/"; an Error says what is wrong with a regular expression.
    static Result<Pattern> parse(std::string_view text);

    [[nodiscard]] bool matches(std::string_view text) const;
    [[nodiscard]] const std::string& text() const { return text_; } ///< as written
    [[nodiscard]] bool is_literal() const;                          ///< matches one text only
    friend bool operator==(const Pattern& a, const Pattern& b) { return a.text_ == b.text_; }

  private:
    std::string text_;
    std::shared_ptr<const re2::RE2> regex_; ///< null: a glob
};

} // namespace affinityd::policy
