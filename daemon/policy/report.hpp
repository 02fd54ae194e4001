// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/diagnostic.hpp"
#include "policy/pattern.hpp"
#include "policy/source.hpp"
#include "policy/tree.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace affinityd::policy {

/// Collects the findings about one file and knows the places in it and its patterns.
class Report {
  public:
    /// Both must outlive the report.
    Report(std::string path, const Source& source, std::vector<Diagnostic>& out);

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
    [[nodiscard]] unsigned length_of(const Node& node) const;
    std::string path_;
    const Source& source_;
    std::vector<Diagnostic>& out_;
    unsigned errors_ = 0;
    std::size_t count_ = 0;
    FilePatterns patterns_;
};

} // namespace affinityd::policy
