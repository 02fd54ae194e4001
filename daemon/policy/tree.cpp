// SPDX-License-Identifier: Apache-2.0
// The only file that knows the YAML library. Events, not its node tree: positions stay exact, repeated keys
// are seen, and bounds are kept while reading, not after.
#include "policy/tree.hpp"

#include "base/text.hpp"
#include "policy/report.hpp"

#include <algorithm>
#include <exception>
#include <initializer_list>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

namespace affinityd::policy {

namespace {

/// Thrown through the library by our handler; caught in this file.
struct Refused {
    Diagnostic fault;
};

Diagnostic fault_at(unsigned line, unsigned column, std::string message, std::string hint = {}) {
    return finding(Severity::error, {"", line, column}, 1, std::move(message), std::move(hint));
}

unsigned to_unsigned(int value) { return value < 0 ? 0U : static_cast<unsigned>(value); }
unsigned line_of(const YAML::Mark& mark) { return to_unsigned(mark.line) + 1; }
unsigned column_of(const YAML::Mark& mark) { return to_unsigned(mark.column) + 1; }

class Builder final : public YAML::EventHandler {
  public:
    explicit Builder(const Source& source) : source_(source) {}

    Node take() { return std::move(root_); }
    /// The collection that was being read when the text ended.
    [[nodiscard]] const Node* innermost() const { return open_.empty() ? nullptr : &open_.back(); }

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (++documents_ > 1) refuse(mark, "a second document begins here", "one file holds one policy");
    }
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        add(make(Node::Kind::null, mark, anchor));
    }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse_property(mark, '*'); }
    void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  const std::string& value) override {
        Node node = make(Node::Kind::scalar, mark, anchor);
        node.text = value;
        if (const auto bad = find_bad_byte(value))
            refuse(mark, bad->message, "no name holds such a character");
        const auto raw = source_.from(node.line, node.column);
        const char sign = raw.empty() ? '\0' : raw.front();
        node.plain = sign != '"' && sign != '\'' && sign != '|' && sign != '>';
        const bool is_quoted = sign == '"' || sign == '\'';
        node.one_line = is_quoted ? ends_in_line(mark, sign) : node.plain && raw.starts_with(value);
        add(std::move(node));
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override {
        open_.push_back(make(Node::Kind::list, mark, anchor));
    }
    void OnSequenceEnd() override { close(); }
    void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override {
        open_.push_back(make(Node::Kind::map, mark, anchor));
    }
    void OnMapEnd() override { close(); }

  private:
    [[noreturn]] static void refuse(const YAML::Mark& mark, std::string message, std::string hint) {
        throw Refused{fault_at(line_of(mark), column_of(mark), std::move(message), std::move(hint))};
    }

    [[noreturn]] static void refuse_property(const YAML::Mark& mark, char sign) {
        const std::string_view as = sign == '!'   ? "the beginning of a tag"
                                    : sign == '&' ? "an anchor"
                                                  : "an alias";
        refuse(mark, fmt::format("YAML reads '{}' here as {}", sign, as), "put the text in double quotes");
    }

    Node make(Node::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
        if (++count_ > max_tree_nodes) refuse(mark, "more than 20000 values", "one file is one policy");
        if (open_.size() >= max_tree_depth) refuse(mark, "nested more than 16 levels deep", {});
        // The library gives the place of a node's first property; a null keeps neither its tag nor a place of
        // its own.
        const auto raw = source_.from(line_of(mark), column_of(mark));
        if (anchor != YAML::NullAnchor) refuse_property(mark, '&');
        if (raw.starts_with('!')) refuse_property(mark, '!');
        Node node;
        node.kind = kind;
        node.line = line_of(mark);
        node.column = column_of(mark);
        const bool is_key =
            !open_.empty() && open_.back().kind == Node::Kind::map && open_.back().items.size() % 2 == 0;
        if (is_key && kind != Node::Kind::scalar) refuse(mark, "a key must be a word", {});
        return node;
    }

    /// Looks for the closing quote, which the library does not miss when the file ends before it.
    [[nodiscard]] bool ends_in_line(const YAML::Mark& mark, char quote) const {
        const unsigned first = line_of(mark);
        auto rest = source_.from(first, column_of(mark)).substr(1);
        for (unsigned line = first; line <= source_.lines(); rest = source_.line(++line)) {
            for (std::size_t at = 0; at < rest.size(); ++at) {
                const bool skips = quote == '"' ? rest[at] == '\\' : rest.substr(at, 2) == "''";
                if (skips)
                    ++at;
                else if (rest[at] == quote)
                    return line == first;
            }
        }
        refuse(mark, "this quote is never closed", {});
    }

    void add(Node node) {
        if (open_.empty())
            root_ = std::move(node);
        else
            open_.back().items.push_back(std::move(node));
    }

    void close() {
        Node node = std::move(open_.back());
        open_.pop_back();
        add(std::move(node));
    }

    const Source& source_;
    Node root_;
    std::vector<Node> open_; ///< collections not yet ended, outermost first; never deeper than max_tree_depth
    std::size_t count_ = 0;
    unsigned documents_ = 0;
};

/// The library stops after the sign that it takes for the beginning of an alias, an anchor or a tag; the
/// sign is the fault.
Diagnostic misread(char sign, std::string_view as, const Source& source, Position at) {
    const auto line = source.line(at.line);
    if (const auto found = line.rfind(sign, at.column - 1); found != std::string_view::npos)
        at.column = static_cast<unsigned>(found) + 1;
    const auto before = split_words(line.substr(0, at.column - 1));
    if (sign == '&' && !before.empty() && before.back().starts_with('!'))
        return misread('!', "the beginning of a tag", source, at);
    return fault_at(at.line, at.column, fmt::format("YAML reads '{}' here as {}", sign, as),
                    sign == '*' ? "put the pattern in double quotes" : "put the text in double quotes");
}

/// The library's words for what people do most often wrong, made plain.
Diagnostic explain(const YAML::Exception& error, const Source& source, const Node* open) {
    namespace said = YAML::ErrorMsg;
    Position at{"", std::min(line_of(error.mark), source.lines()), column_of(error.mark)};
    const auto line = source.line(at.line);
    const auto here = source.from(at.line, at.column);
    const char sign = here.empty() ? '\0' : here.front();
    const auto is = [&](std::initializer_list<std::string_view> messages) {
        return std::ranges::find(messages, error.msg) != messages.end();
    };
    const auto not_yaml = [&](const std::string& why, std::string hint = {}) {
        return fault_at(at.line, at.column, "this is not YAML: " + why, std::move(hint));
    };
    if (const auto tab = line.find('\t'); tab < line.find_first_not_of(" \t")) {
        at.column = 1 + static_cast<unsigned>(tab);
        return not_yaml("a tab in the indentation", "indent with spaces");
    }
    if (sign == '*' || is({said::ALIAS_NOT_FOUND, said::UNKNOWN_ANCHOR, said::CHAR_IN_ALIAS}))
        return misread('*', "an alias", source, at);
    if (sign == '&' || is({said::ANCHOR_NOT_FOUND, said::CHAR_IN_ANCHOR}))
        return misread('&', "an anchor", source, at);
    if (is({said::CHAR_IN_TAG_HANDLE, said::END_OF_VERBATIM_TAG, said::TAG_WITH_NO_SUFFIX}))
        return misread('!', "the beginning of a tag", source, at);
    if ((sign == '%' && at.column > 1) || sign == '@' || sign == '`')
        return fault_at(at.line, at.column,
                        fmt::format("YAML does not let a plain text begin with '{}'", sign),
                        "put the text in double quotes");
    if (error.msg == said::FLOW_END) return not_yaml(fmt::format("this '{}' closes nothing", sign));
    if (error.msg == said::BLOCK_ENTRY)
        return not_yaml("a list with '-' cannot begin here",
                        "begin it on a line of its own, or write [a, b]");
    if (error.msg.starts_with(said::INVALID_ESCAPE))
        return not_yaml(error.msg, "in double quotes a backslash is written twice; in single quotes once");
    if (error.msg == said::MAP_VALUE)
        return not_yaml("no key can stand here",
                        "indent it like its neighbours, put a space after each ':', and a text that holds "
                        "': ' in double quotes");
    if (is({said::END_OF_MAP, said::END_OF_SEQ})) {
        const auto before = trim_text(line.substr(0, at.column - 1));
        if (before.ends_with('"') || before.ends_with('\''))
            return not_yaml("there is text after the closing quote", "quote the whole text");
        return not_yaml("this line does not continue what comes before it",
                        "is this line indented like its neighbours, and is there a ':' after the key?");
    }
    if (is({said::END_OF_SEQ_FLOW, said::END_OF_MAP_FLOW})) {
        if (here.empty() && open != nullptr) at = {"", open->line, open->column};
        const char bracket = error.msg == said::END_OF_MAP_FLOW ? '{' : '[';
        return not_yaml(fmt::format("a '{}' is not closed where it should be", bracket),
                        "put a text that holds one of [ ] { } , in double quotes");
    }
    return not_yaml(error.msg);
}

} // namespace

std::expected<Node, Diagnostic> parse_tree(std::string_view text) {
    if (text.size() > max_document_bytes)
        return std::unexpected(fault_at(1, 1, "the file is larger than 256 KiB"));
    if (const auto bad = find_bad_byte(text)) {
        const auto before = text.substr(0, bad->offset);
        const auto line = static_cast<unsigned>(std::ranges::count(before, '\n')) + 1;
        const auto column = before.size() - (before.rfind('\n') + 1) + 1; // npos + 1: none is before it
        return std::unexpected(fault_at(line, static_cast<unsigned>(column), bad->message));
    }
    const Source source(text);
    Builder builder(source);
    try {
        std::istringstream stream{std::string(text)};
        YAML::Parser parser(stream);
        while (parser.HandleNextDocument(builder)) {
        }
        return builder.take();
    } catch (const Refused& refused) {
        return std::unexpected(refused.fault);
    } catch (const YAML::Exception& error) {
        return std::unexpected(explain(error, source, builder.innermost()));
    } catch (const std::exception& error) {
        return std::unexpected(fault_at(1, 1, std::string("the YAML reader failed: ") + error.what()));
    }
}

} // namespace affinityd::policy
