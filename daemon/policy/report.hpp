// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/diagnostic.hpp"
#include "policy/pattern.hpp"
#include "policy/tree.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
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

/// Collects the findings about one file and knows the places in it and its patterns.
class Report {
  public:
    /// `text` and `out` must outlive the report.
    Report(std::string path, std::string_view text, std::vector<Diagnostic>& out)
        : path_(std::move(path)), text_(text), source_(text), out_(out) {}

    /// The text as one map. No value: it is none, which is reported; or it has no content, which is reported
    /// unless it may be empty.
    [[nodiscard]] std::optional<Node> read_root(bool may_be_empty);

    void error(const Node& node, std::string message, std::string hint = {});
    void warn(const Node& node, std::string message, std::string hint = {});
    /// About a part of a scalar: `offset` and `length` in bytes of its text.
    void error_inside(const Node& scalar, std::size_t offset, std::size_t length, std::string message,
                      std::string hint = {});
    /// About a place that is no node.
    void add(Severity severity, unsigned line, unsigned column, unsigned length, std::string message,
             std::string hint = {});

    [[nodiscard]] Position at(const Node& node) const;
    /// Where the text of a scalar begins: after its quote, if it has one.
    [[nodiscard]] Position text_at(const Node& scalar) const;
    [[nodiscard]] unsigned errors() const { return errors_; }
    /// The file is refused, and nothing more will be said of it: there is no use in looking further.
    [[nodiscard]] bool is_full() const;
    [[nodiscard]] FilePatterns& patterns() { return patterns_; }

  private:
    /// A scalar as the file has it.
    struct Written {
        std::string_view text;    ///< to the end of the line
        unsigned quote = 0;       ///< bytes
        bool is_verbatim = false; ///< offsets into the scalar's text are offsets into the line
    };
    [[nodiscard]] Written written(const Node& scalar) const;
    [[nodiscard]] unsigned length_of(const Node& node) const;
    std::string path_;
    std::string_view text_;
    Source source_;
    std::vector<Diagnostic>& out_;
    unsigned errors_ = 0;
    std::size_t count_ = 0;
    FilePatterns patterns_;
};

} // namespace affinityd::policy
