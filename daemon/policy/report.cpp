// SPDX-License-Identifier: Apache-2.0
#include "policy/report.hpp"

#include "base/escape.hpp"
#include "base/text.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

namespace affinityd::policy {

Source::Source(std::string_view text) : text_(text), starts_{0} {
    for (std::size_t at = 0; at < text.size(); ++at)
        if (text[at] == '\n') starts_.push_back(at + 1);
}

std::string_view Source::line(unsigned number) const {
    if (number == 0 || number > starts_.size()) return {};
    auto line = text_.substr(starts_[number - 1]);
    line = line.substr(0, line.find('\n'));
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
}

std::string_view Source::from(unsigned number, unsigned column) const {
    const auto whole = line(number);
    return column == 0 || column > whole.size() ? std::string_view{} : whole.substr(column - 1);
}

namespace {

constexpr std::size_t max_findings = 100; // per file; a hostile file deserves no more

bool is_control(std::uint32_t point) {
    return (point < 0x20 && point != '\t' && point != '\n' && point != '\r') ||
           (point >= 0x7F && point < 0xA0);
}

/// Line separators count as line ends for YAML readers but not for editors.
bool is_misleading(std::uint32_t point) {
    return (point >= 0x202A && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069) || point == 0x2028 ||
           point == 0x2029 || point == 0xFEFF;
}

} // namespace

std::optional<BadByte> find_bad_byte(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const auto found = first_character(text.substr(at));
        if (found.bytes == 0) {
            const auto byte = static_cast<unsigned char>(text[at]);
            return BadByte{at, fmt::format("byte 0x{:02x} is not UTF-8 text", byte)};
        }
        const bool lone_return = found.point == '\r' && text.substr(at, 2) != "\r\n";
        if (found.point == 0) return BadByte{at, "a NUL byte"};
        if (is_control(found.point) || lone_return)
            return BadByte{at, fmt::format("control character U+{:04X}", found.point)};
        if (is_misleading(found.point))
            return BadByte{at, fmt::format("character U+{:04X} changes how the line looks, not what it says",
                                           found.point)};
        at += found.bytes;
    }
    return std::nullopt;
}

std::optional<Node> Report::read_root(bool may_be_empty) {
    auto tree = parse_tree(text_);
    if (tree && tree->kind == Node::Kind::map) return std::move(*tree);
    if (!tree)
        add(Severity::error, tree.error().at.line, tree.error().at.column, 1, std::move(tree.error().message),
            std::move(tree.error().hint));
    else if (tree->kind != Node::Kind::null || !may_be_empty)
        add(Severity::error, std::max(1U, tree->line), std::max(1U, tree->column), 1,
            "the file must be a map of keys and values", "begin with 'version: 1'");
    return std::nullopt;
}

Position Report::at(const Node& node) const { return {path_, node.line, node.column}; }

Report::Written Report::written(const Node& scalar) const {
    const auto raw = source_.from(scalar.line, scalar.column);
    const unsigned quote = raw.starts_with('"') || raw.starts_with('\'') ? 1 : 0;
    return {raw, quote, raw.substr(quote).starts_with(scalar.text)};
}

Position Report::text_at(const Node& scalar) const {
    auto position = at(scalar);
    if (const auto found = written(scalar); found.is_verbatim) position.column += found.quote;
    return position;
}

unsigned Report::length_of(const Node& node) const {
    if (node.kind != Node::Kind::scalar) return 1;
    const auto found = written(node);
    if (found.is_verbatim && (node.plain || found.quote > 0))
        return static_cast<unsigned>(node.text.size()) + 2 * found.quote;
    return static_cast<unsigned>(trim_text(found.text).size());
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
    const auto found = written(scalar);
    if (!found.is_verbatim) return error(scalar, std::move(message), std::move(hint));
    add(Severity::error, scalar.line, scalar.column + found.quote + static_cast<unsigned>(offset),
        static_cast<unsigned>(length), std::move(message), std::move(hint));
}

void Report::add(Severity severity, unsigned line, unsigned column, unsigned length, std::string message,
                 std::string hint) {
    if (severity == Severity::error) ++errors_;
    // An error is never among what is left out without one being said: a file without errors is accepted.
    const bool first_error = severity == Severity::error && errors_ == 1;
    if (++count_ > max_findings && !first_error) return;
    Position at{path_, line, column};
    if (count_ == max_findings && !first_error) {
        out_.push_back(finding(Severity::note, std::move(at), 1,
                               "more than 100 findings in this file; most of the rest is left out"));
        return;
    }
    out_.push_back(
        finding(severity, std::move(at), std::max(1U, length), std::move(message), std::move(hint)));
    out_.back().source_line = source_.line(line);
}

} // namespace affinityd::policy
