// SPDX-License-Identifier: Apache-2.0
// The only file that knows the YAML library. Events, not its node tree: positions stay exact, repeated keys
// are seen, and bounds are kept while reading, not after.
#include "policy/tree.hpp"

#include "base/text.hpp"
#include "policy/report.hpp"

#include <algorithm>
#include <exception>
#include <initializer_list>
#include <optional>
#include <sstream>
#include <utility>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

namespace affinityd::policy {

namespace {

/// Thrown through the library by our handler; caught in this file.
struct Refused {
    TreeFault fault;
};

unsigned to_unsigned(int value) { return value < 0 ? 0U : static_cast<unsigned>(value); }

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
        if (sign == '"' || sign == '\'')
            node.one_line = ends_in_line(mark, sign);
        else
            node.one_line = node.plain && raw.starts_with(value);
        add(std::move(node));
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value) override {
        open(make(Node::Kind::list, mark, anchor));
    }
    void OnSequenceEnd() override { close(); }
    void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value) override {
        open(make(Node::Kind::map, mark, anchor));
    }
    void OnMapEnd() override { close(); }

  private:
    [[noreturn]] static void refuse(const YAML::Mark& mark, std::string message, std::string hint) {
        throw Refused{{to_unsigned(mark.line) + 1, to_unsigned(mark.column) + 1, 1, std::move(message),
                       std::move(hint)}};
    }

    [[noreturn]] static void refuse_property(const YAML::Mark& mark, char sign) {
        if (sign == '!')
            refuse(mark, "YAML reads '!' here as the beginning of a tag", "put the text in double quotes");
        refuse(mark,
               std::string("YAML reads '") + sign + "' here as " + (sign == '&' ? "an anchor" : "an alias"),
               "put the text in double quotes");
    }

    Node make(Node::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
        if (++count_ > max_tree_nodes) refuse(mark, "more than 20000 values", "one file is one policy");
        if (open_.size() >= max_tree_depth) refuse(mark, "nested more than 16 levels deep", {});
        // The library gives the place of a node's first property; a null keeps neither its tag nor a place of
        // its own.
        const auto raw = source_.from(to_unsigned(mark.line) + 1, to_unsigned(mark.column) + 1);
        if (anchor != YAML::NullAnchor) refuse_property(mark, '&');
        if (raw.starts_with('!')) refuse_property(mark, '!');
        Node node;
        node.kind = kind;
        node.line = to_unsigned(mark.line) + 1;
        node.column = to_unsigned(mark.column) + 1;
        if (is_key() && kind != Node::Kind::scalar) refuse(mark, "a key must be a word", {});
        return node;
    }

    /// Looks for the closing quote, which the library does not miss when the file ends before it.
    [[nodiscard]] bool ends_in_line(const YAML::Mark& mark, char quote) const {
        const unsigned first = to_unsigned(mark.line) + 1;
        auto rest = source_.from(first, to_unsigned(mark.column) + 1).substr(1);
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

    [[nodiscard]] bool is_key() const {
        return !open_.empty() && open_.back().kind == Node::Kind::map && open_.back().items.size() % 2 == 0;
    }

    void add(Node node) {
        if (open_.empty())
            root_ = std::move(node);
        else
            open_.back().items.push_back(std::move(node));
    }

    void open(Node node) { open_.push_back(std::move(node)); }

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

std::string_view indentation(std::string_view line) { return line.substr(0, line.find_first_not_of(" \t")); }

/// The library stops after the sign that it takes for the beginning of an alias or an anchor; the sign is
/// the fault.
void point_at(char sign, const Source& source, TreeFault& fault) {
    const auto at = source.line(fault.line).rfind(sign, fault.column - 1);
    if (at != std::string_view::npos) fault.column = static_cast<unsigned>(at) + 1;
}

void misread(char sign, std::string_view as, const Source& source, TreeFault& fault) {
    point_at(sign, source, fault);
    const auto before = split_words(source.line(fault.line).substr(0, fault.column - 1));
    if (sign == '&' && !before.empty() && before.back().starts_with('!'))
        return misread('!', "the beginning of a tag", source, fault);
    fault.message = std::string("YAML reads '") + sign + "' here as " + std::string(as);
    fault.hint = sign == '*' ? "put the pattern in double quotes" : "put the text in double quotes";
}

bool follows_quote(const Source& source, const TreeFault& fault) {
    const auto before = trim_text(source.line(fault.line).substr(0, fault.column - 1));
    return before.ends_with('"') || before.ends_with('\'');
}

/// The library's words for what people do most often wrong, made plain.
TreeFault explain(const YAML::Exception& error, const Source& source, const Node* open) {
    namespace said = YAML::ErrorMsg;
    TreeFault fault{std::min(to_unsigned(error.mark.line) + 1, source.lines()),
                    to_unsigned(error.mark.column) + 1,
                    1,
                    {},
                    {}};
    fault.message = "this is not YAML: " + error.msg;
    const auto here = source.from(fault.line, fault.column);
    const char sign = here.empty() ? '\0' : here.front();
    const auto is = [&](std::initializer_list<std::string_view> messages) {
        return std::ranges::find(messages, error.msg) != messages.end();
    };
    if (indentation(source.line(fault.line)).find('\t') != std::string_view::npos) {
        fault.message = "this is not YAML: a tab in the indentation";
        fault.hint = "indent with spaces";
        fault.column = 1 + static_cast<unsigned>(source.line(fault.line).find('\t'));
    } else if (sign == '*' || is({said::ALIAS_NOT_FOUND, said::UNKNOWN_ANCHOR, said::CHAR_IN_ALIAS})) {
        misread('*', "an alias", source, fault);
    } else if (sign == '&' || is({said::ANCHOR_NOT_FOUND, said::CHAR_IN_ANCHOR})) {
        misread('&', "an anchor", source, fault);
    } else if (is({said::CHAR_IN_TAG_HANDLE, said::END_OF_VERBATIM_TAG, said::TAG_WITH_NO_SUFFIX})) {
        misread('!', "the beginning of a tag", source, fault);
    } else if ((sign == '%' && fault.column > 1) || sign == '@' || sign == '`') {
        fault.message = std::string("YAML does not let a plain text begin with '") + sign + "'";
        fault.hint = "put the text in double quotes";
    } else if (error.msg == said::FLOW_END) {
        fault.message = std::string("this is not YAML: this '") + sign + "' closes nothing";
    } else if (error.msg == said::BLOCK_ENTRY) {
        fault.message = "this is not YAML: a list with '-' cannot begin here";
        fault.hint = "begin it on a line of its own, or write [a, b]";
    } else if (error.msg.starts_with(said::INVALID_ESCAPE)) {
        fault.hint = "in double quotes a backslash is written twice; in single quotes once";
    } else if (error.msg == said::MAP_VALUE) {
        fault.message = "this is not YAML: no key can stand here";
        fault.hint = "indent it like its neighbours, put a space after each ':', and a text that holds ': ' "
                     "in double quotes";
    } else if (is({said::END_OF_MAP, said::END_OF_SEQ}) && follows_quote(source, fault)) {
        fault.message = "this is not YAML: there is text after the closing quote";
        fault.hint = "quote the whole text";
    } else if (is({said::END_OF_MAP, said::END_OF_SEQ})) {
        fault.message = "this is not YAML: this line does not continue what comes before it";
        fault.hint = "is this line indented like its neighbours, and is there a ':' after the key?";
    } else if (is({said::END_OF_SEQ_FLOW, said::END_OF_MAP_FLOW})) {
        const bool map = error.msg == said::END_OF_MAP_FLOW;
        fault.message =
            std::string("this is not YAML: a '") + (map ? "{" : "[") + "' is not closed where it should be";
        fault.hint = "put a text that holds one of [ ] { } , in double quotes";
        if (here.empty() && open != nullptr) fault = {open->line, open->column, 1, fault.message, fault.hint};
    }
    return fault;
}

TreeFault at_offset(std::string_view text, std::size_t offset, std::string message) {
    const auto before = text.substr(0, offset);
    const auto line = static_cast<unsigned>(std::ranges::count(before, '\n')) + 1;
    const auto last = before.rfind('\n');
    const auto column =
        static_cast<unsigned>(last == std::string_view::npos ? offset : offset - last - 1) + 1;
    return {line, column, 1, std::move(message), {}};
}

} // namespace

std::expected<Node, TreeFault> parse_tree(std::string_view text) {
    if (text.size() > max_document_bytes)
        return std::unexpected(TreeFault{1, 1, 1, "the file is larger than 256 KiB", {}});
    if (const auto bad = find_bad_byte(text))
        return std::unexpected(at_offset(text, bad->offset, bad->message));
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
        return std::unexpected(
            TreeFault{1, 1, 1, std::string("the YAML reader failed: ") + error.what(), {}});
    }
}

} // namespace affinityd::policy
