// SPDX-License-Identifier: Apache-2.0
#include "policy/report.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <utility>

namespace affinityd::policy {

namespace {

constexpr std::size_t max_findings = 100; // per file; nobody reads more, and a hostile file deserves no more

/// True if the file has the scalar's text unchanged, so that offsets into its text are offsets into the
/// line.
bool is_verbatim(std::string_view raw, const Node& scalar) { return raw.starts_with(scalar.text); }

bool is_quoted(std::string_view raw) { return raw.starts_with('"') || raw.starts_with('\''); }

} // namespace

Report::Report(std::string path, const Source& source, std::vector<Diagnostic>& out)
    : path_(std::move(path)), source_(source), out_(out) {}

Position Report::at(const Node& node) const { return {path_, node.line, node.column}; }

Position Report::text_at(const Node& scalar) const {
    auto position = at(scalar);
    const auto raw = source_.from(scalar.line, scalar.column);
    if (is_quoted(raw) && is_verbatim(raw.substr(1), scalar)) ++position.column;
    return position;
}

unsigned Report::length_of(const Node& node) const {
    const auto raw = source_.from(node.line, node.column);
    if (node.kind != Node::Kind::scalar) return 1;
    if (node.plain && is_verbatim(raw, node)) return static_cast<unsigned>(node.text.size());
    if (is_quoted(raw) && is_verbatim(raw.substr(1), node))
        return static_cast<unsigned>(node.text.size() + 2);
    return static_cast<unsigned>(trim_text(raw).size());
}

bool Report::is_full() const { return errors_ > 0 && count_ >= max_findings; }

void Report::error(const Node& node, std::string message, std::string hint) {
    if (is_full()) return; // the length takes time in a long line
    add(Severity::error, node.line, node.column, length_of(node), std::move(message), std::move(hint));
}

void Report::warn(const Node& node, std::string message, std::string hint) {
    if (count_ >= max_findings) return;
    add(Severity::warning, node.line, node.column, length_of(node), std::move(message), std::move(hint));
}

void Report::error_inside(const Node& scalar, std::size_t offset, std::size_t length, std::string message,
                          std::string hint) {
    if (is_full()) return;
    auto raw = source_.from(scalar.line, scalar.column);
    const unsigned quote = is_quoted(raw) ? 1 : 0;
    if (!is_verbatim(raw.substr(quote), scalar)) return error(scalar, std::move(message), std::move(hint));
    add(Severity::error, scalar.line, scalar.column + quote + static_cast<unsigned>(offset),
        static_cast<unsigned>(length), std::move(message), std::move(hint));
}

void Report::add(Severity severity, unsigned line, unsigned column, unsigned length, std::string message,
                 std::string hint) {
    if (severity == Severity::error) ++errors_;
    // An error is never among what is left out without one being said: a file without errors is accepted.
    const bool first_error = severity == Severity::error && errors_ == 1;
    if (++count_ > max_findings && !first_error) return;
    if (count_ == max_findings && !first_error) {
        out_.push_back({.severity = Severity::note,
                        .at = {path_, line, column},
                        .length = 1,
                        .message = "more than 100 findings in this file; most of the rest is left out",
                        .hint = {},
                        .source_line = {}});
        return;
    }
    out_.push_back({.severity = severity,
                    .at = {path_, line, column},
                    .length = std::max(1U, length),
                    .message = std::move(message),
                    .hint = std::move(hint),
                    .source_line = std::string(source_.line(line))});
}

} // namespace affinityd::policy
