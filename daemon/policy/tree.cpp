// SPDX-License-Identifier: Apache-2.0
// The only file that knows the YAML library. Events, not its node tree: positions stay exact, repeated keys are seen, and
// bounds are kept while reading, not after.
#include "policy/tree.hpp"

#include "policy/source.hpp"

#include <algorithm>
#include <exception>
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

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (++documents_ > 1) refuse(mark, "a second document begins here", "one file holds one policy");
    }
    void OnDocumentEnd() override {}
    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(make(Node::Kind::null, mark, anchor)); }
    void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override { refuse_property(mark, '*'); }
    void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, const std::string& value) override {
        Node node = make(Node::Kind::scalar, mark, anchor);
        node.text = value;
        const auto raw = source_.from(node.line, node.column);
        node.plain = !raw.starts_with('"') && !raw.starts_with('\'') && !raw.starts_with('|') && !raw.starts_with('>');
        add(std::move(node));
    }
    void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
        open(make(Node::Kind::list, mark, anchor));
    }
    void OnSequenceEnd() override { close(); }
    void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, YAML::EmitterStyle::value) override {
        open(make(Node::Kind::map, mark, anchor));
    }
    void OnMapEnd() override { close(); }

  private:
    [[noreturn]] static void refuse(const YAML::Mark& mark, std::string message, std::string hint) {
        throw Refused{{to_unsigned(mark.line) + 1, to_unsigned(mark.column) + 1, 1, std::move(message), std::move(hint)}};
    }

    [[noreturn]] static void refuse_property(const YAML::Mark& mark, char sign) {
        if (sign == '!') refuse(mark, "YAML reads '!' here as the beginning of a tag", "put the text in double quotes");
        refuse(mark, std::string("YAML reads '") + sign + "' here as " + (sign == '&' ? "an anchor" : "an alias"),
               "put the text in double quotes");
    }

    Node make(Node::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
        if (++count_ > max_tree_nodes) refuse(mark, "more than 20000 values", "one file is one policy");
        if (open_.size() >= max_tree_depth) refuse(mark, "nested more than 16 levels deep", {});
        // The library gives the place of a node's first property; a null keeps neither its tag nor a place of its own.
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

    [[nodiscard]] bool is_key() const {
        return !open_.empty() && open_.back().kind == Node::Kind::map && open_.back().items.size() % 2 == 0;
    }

    void add(Node node) {
        if (open_.empty()) root_ = std::move(node);
        else open_.back().items.push_back(std::move(node));
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

/// The library's words for what people do most often wrong, made plain.
TreeFault explain(const YAML::Exception& error, const Source& source) {
    TreeFault fault{std::min(to_unsigned(error.mark.line) + 1, source.lines()), to_unsigned(error.mark.column) + 1, 1, {}, {}};
    fault.message = "this is not YAML: " + error.msg;
    const auto here = source.from(fault.line, fault.column);
    const char sign = here.empty() ? '\0' : here.front();
    if (error.msg == YAML::ErrorMsg::TAB_IN_INDENTATION || sign == '\t') {
        fault.hint = "indent with blanks, not with tabs";
    } else if (sign == '*' || error.msg == YAML::ErrorMsg::ALIAS_NOT_FOUND || error.msg == YAML::ErrorMsg::UNKNOWN_ANCHOR ||
               error.msg == YAML::ErrorMsg::CHAR_IN_ALIAS) {
        fault.message = "YAML reads '*' here as an alias";
        fault.hint = "put the pattern in double quotes";
    } else if (sign == '&' || error.msg == YAML::ErrorMsg::ANCHOR_NOT_FOUND || error.msg == YAML::ErrorMsg::CHAR_IN_ANCHOR) {
        fault.message = "YAML reads '&' here as an anchor";
        fault.hint = "put the text in double quotes";
    } else if (sign == '%' || sign == '@' || sign == '`') {
        fault.message = std::string("YAML does not let a plain text begin with '") + sign + "'";
        fault.hint = "put the text in double quotes";
    } else if (error.msg == YAML::ErrorMsg::MAP_VALUE) {
        fault.hint = "a text that holds ': ' must be in double quotes";
    } else if (error.msg == YAML::ErrorMsg::END_OF_MAP) {
        fault.hint = "is this line indented like its neighbours, and is there a ':' behind the key?";
    } else if (error.msg == YAML::ErrorMsg::END_OF_SEQ_FLOW || error.msg == YAML::ErrorMsg::END_OF_MAP_FLOW) {
        fault.hint = "a '[' or '{' is not closed, or a text with such a character is not in quotes";
    } else if (error.msg == YAML::ErrorMsg::EOF_IN_SCALAR) {
        fault.message = "this is not YAML: a quote is never closed";
    } else if (error.msg == YAML::ErrorMsg::CHAR_IN_TAG_HANDLE || error.msg == YAML::ErrorMsg::END_OF_VERBATIM_TAG ||
               error.msg == YAML::ErrorMsg::TAG_WITH_NO_SUFFIX) {
        fault.message = "YAML reads '!' here as the beginning of a tag";
        fault.hint = "put the text in double quotes";
    }
    return fault;
}

TreeFault at_offset(std::string_view text, std::size_t offset, std::string message) {
    const auto before = text.substr(0, offset);
    const auto line = static_cast<unsigned>(std::ranges::count(before, '\n')) + 1;
    const auto last = before.rfind('\n');
    const auto column = static_cast<unsigned>(last == std::string_view::npos ? offset : offset - last - 1) + 1;
    return {line, column, 1, std::move(message), {}};
}

} // namespace

std::expected<Node, TreeFault> parse_tree(std::string_view text) {
    if (text.size() > max_document_bytes) return std::unexpected(TreeFault{1, 1, 1, "the file is larger than 256 KiB", {}});
    if (const auto bad = find_bad_byte(text)) return std::unexpected(at_offset(text, bad->offset, bad->message));
    const Source source(text);
    try {
        std::istringstream stream{std::string(text)};
        YAML::Parser parser(stream);
        Builder builder(source);
        while (parser.HandleNextDocument(builder)) {}
        return builder.take();
    } catch (const Refused& refused) {
        return std::unexpected(refused.fault);
    } catch (const YAML::Exception& error) {
        return std::unexpected(explain(error, source));
    } catch (const std::exception& error) {
        return std::unexpected(TreeFault{1, 1, 1, std::string("the YAML reader failed: ") + error.what(), {}});
    }
}

} // namespace affinityd::policy
