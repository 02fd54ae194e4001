// SPDX-License-Identifier: Apache-2.0
#include "policy/pattern.hpp"

#include "base/glob.hpp"

#include <re2/re2.h>

namespace affinityd::policy {

namespace {
constexpr std::size_t max_length = 1024;
// Programs of some 5,000 instructions, which take half a millisecond to compile: an expression of 1,024 bytes
// that repeats nothing hundreds of times has a fifth of that.
constexpr int max_regex_memory = 64 << 10;
} // namespace

Result<Pattern> Pattern::parse(std::string_view text) {
    if (text.empty()) return fail("an empty pattern matches nothing");
    if (text.size() > max_length) return fail("the pattern is longer than 1024 bytes");
    Pattern pattern;
    pattern.text_ = std::string(text);
    if (!is_expression(text)) return pattern;
    // Bytes, not characters, and a dot for every byte: the texts are any process's to choose, and one byte
    // that is no UTF-8 or a line end must not get a name past a rule.
    re2::RE2::Options options(re2::RE2::Latin1);
    options.set_log_errors(false);
    options.set_dot_nl(true);
    options.set_max_mem(max_regex_memory);
    const std::string body(text.substr(1, text.size() - 2));
    pattern.regex_ = std::make_shared<const re2::RE2>(body, options);
    if (!pattern.regex_->ok()) return fail("the regular expression is wrong: " + pattern.regex_->error());
    return pattern;
}

bool Pattern::is_expression(std::string_view text) {
    return text.size() >= 3 && text.front() == '/' && text.back() == '/';
}

bool Pattern::matches(std::string_view text) const {
    if (regex_) return re2::RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), *regex_);
    return glob_match(text_, text) || (!kept_.empty() && glob_match(kept_, text));
}

Pattern Pattern::of_name() const {
    Pattern pattern = *this;
    if (is_too_long()) pattern.kept_ = std::string(glob_beginning(text_, longest_task_name));
    return pattern;
}

bool Pattern::is_too_long() const { return !regex_ && shortest_match(text_) > longest_task_name; }

bool Pattern::is_literal() const { return !regex_ && is_literal_glob(text_); }

Result<Pattern> FilePatterns::parse(std::string_view text) {
    if (!Pattern::is_expression(text)) return Pattern::parse(text);
    if (const auto known = expressions_.find(text); known != expressions_.end()) return known->second;
    if (expressions_.size() >= most_expressions)
        return fail("more than " + std::to_string(most_expressions) +
                    " different regular expressions in one file");
    return expressions_.emplace(std::string(text), Pattern::parse(text)).first->second;
}

} // namespace affinityd::policy
