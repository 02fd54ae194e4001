// SPDX-License-Identifier: Apache-2.0
#include "policy/cpu_expr.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <span>
#include <utility>

namespace affinityd::policy {

namespace {

using Op = CpuExpr::Op;
using Parsed = std::expected<CpuExpr, CpuExprError>;

constexpr std::size_t max_text =
    4096; // far more than a person writes; bounds recursion and work on hostile text
constexpr unsigned max_depth = 64;

struct Word {
    std::string_view text;
    Op op;
};
constexpr std::array plain_words{Word{"all", Op::all},
                                 Word{"online", Op::all},
                                 Word{"isolated", Op::isolated},
                                 Word{"nohz_full", Op::nohz_full},
                                 Word{"pods", Op::pods},
                                 Word{"smt", Op::smt},
                                 Word{"housekeeping", Op::housekeeping},
                                 Word{"nic", Op::nic}};
constexpr std::array group_words{
    Word{"node", Op::node}, Word{"socket", Op::socket}, Word{"package", Op::socket}, Word{"die", Op::die},
    Word{"llc", Op::llc},   Word{"core", Op::core},     Word{"cluster", Op::cluster}};

constexpr std::string_view known_words = "a CPU list like 0-3,8, or one of all, isolated, nohz_full, "
                                         "housekeeping, pods, smt, nic, nic:NAME, kind:NAME, "
                                         "node:N, socket:N, die:N, cluster:N, llc:N, core:N";

/// Words of other tools for what has another name here.
constexpr std::array foreign_words{Word{"numa", Op::node}, Word{"ccd", Op::llc}, Word{"ccx", Op::llc}};

bool is_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
/// Interface names may hold nearly anything; these are the ones that cannot be taken for an operator.
bool is_name(char c) { return is_word(c) || is_digit(c) || c == '.' || c == '@' || c == '*' || c == '?'; }

const Word* find_word(std::span<const Word> words, std::string_view text) {
    const auto found = std::ranges::find(words, text, &Word::text);
    return found == words.end() ? nullptr : &*found;
}

std::string_view group_name(Op op) {
    return std::ranges::find(group_words, op, &Word::op)->text; // "socket" precedes its synonym "package"
}

class Parser {
  public:
    explicit Parser(std::string_view text) : text_(text) {}

    Parsed whole() {
        auto expr = alternatives(0);
        if (!expr) return expr;
        skip_spaces();
        if (at_ == text_.size()) return expr;
        if (peek() == ')') return wrong(at_, 1, "this ')' closes nothing");
        if (peek() == ':')
            return wrong(at_, 1, "strides are not read here", "write each CPU, like 0,2,4, or ranges");
        return wrong(at_, 1, std::string("unexpected '") + peek() + "'",
                     "expected one of & | - , or the end");
    }

  private:
    Parsed alternatives(unsigned depth) {
        auto left = conjunction(depth);
        while (left) {
            skip_spaces();
            const char c = peek();
            if (c != '|' && c != '-' && c != ',') return left;
            ++at_;
            left = join(c == '-' ? Op::subtract : Op::unite, std::move(*left), conjunction(depth));
        }
        return left;
    }

    Parsed conjunction(unsigned depth) {
        auto left = factor(depth);
        while (left) {
            skip_spaces();
            if (peek() != '&') return left;
            ++at_;
            left = join(Op::intersect, std::move(*left), factor(depth));
        }
        return left;
    }

    Parsed factor(unsigned depth) {
        skip_spaces();
        if (depth > max_depth) return wrong(at_, 1, "nested too deeply");
        const std::size_t begin = at_;
        if (peek() == '!') {
            ++at_;
            auto inner = factor(depth + 1);
            if (!inner) return inner;
            auto expr = leaf(Op::complement, begin);
            expr.children.push_back(std::move(*inner));
            return expr;
        }
        if (peek() == '(') {
            ++at_;
            auto inner = alternatives(depth + 1);
            if (!inner) return inner;
            skip_spaces();
            if (peek() != ')') return wrong(begin, 1, "this '(' is never closed", "add ')'");
            ++at_;
            return inner;
        }
        return atom();
    }

    Parsed atom() {
        const std::size_t begin = at_;
        if (is_digit(peek())) return numbers(Op::list, begin);
        const std::string expected = "expected " + std::string(known_words);
        if (at_ == text_.size()) return wrong(at_, 1, "something is missing here", expected);
        if (!is_word(peek()))
            return wrong(at_, 1, std::string("unexpected '") + peek() + "'",
                         peek() == '~' ? "write ! for all other CPUs" : expected);
        while (is_word(peek()))
            ++at_;
        const std::string_view word = text_.substr(begin, at_ - begin);
        if (peek() != ':') {
            if (const Word* plain = find_word(plain_words, word)) return leaf(plain->op, begin);
            if (find_word(group_words, word) != nullptr || word == "kind")
                return wrong(begin, word.size(), "'" + std::string(word) + "' needs to say which",
                             "write " + std::string(word) + (word == "kind" ? ":performance" : ":0"));
            if (word == "measured")
                return wrong(begin, word.size(), "'measured' is no CPU set",
                             "it stands alone, as near: measured or together: measured");
            return wrong(begin, word.size(), "'" + std::string(word) + "' is not known",
                         word == "N" ? "write the last CPU's number, or all others away from all: all - 0-1"
                                     : expected);
        }
        ++at_;
        if (const Word* group = find_word(group_words, word)) {
            if (!is_digit(peek()))
                return wrong(at_, 1, "expected a number after '" + std::string(word) + ":'");
            return numbers(group->op, begin);
        }
        if (word == "nic") return named(Op::nic, begin, "interface name");
        if (word == "kind") return named(Op::kind, begin, "kind of core");
        const Word* foreign = find_word(foreign_words, word);
        return wrong(begin, word.size(), "'" + std::string(word) + ":' is not known",
                     foreign != nullptr ? "write " + std::string(group_name(foreign->op)) + ":" +
                                              std::string(text_.substr(at_))
                                        : expected);
    }

    Parsed named(Op op, std::size_t begin, const char* what) {
        const std::size_t from = at_;
        // A '-' belongs to the name only if the name goes on: "nic:br-lan", but "nic:eth0 - 3" and
        // "nic:eth0-" do not.
        while (is_name(peek()) || (op == Op::nic && peek() == '-' && at_ > from && at_ + 1 < text_.size() &&
                                   is_name(text_[at_ + 1])))
            ++at_;
        if (at_ == from) return wrong(at_, 1, std::string("expected the ") + what + " after ':'");
        auto expr = leaf(op, begin);
        expr.name = std::string(text_.substr(from, at_ - from));
        return expr;
    }

    /// "0-3,8" or "0-3 8": a comma, blank or dash belongs to the list only if a digit follows.
    Parsed numbers(Op op, std::size_t begin) {
        const std::size_t from = at_;
        CpuSet ids;
        while (true) {
            const std::size_t item = at_;
            const auto first = number();
            auto last = first;
            if (first && peek() == '-' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1])) {
                ++at_;
                last = number();
            }
            if (!first || !last) return wrong(item, at_ - item, "the number is too large");
            if (*last < *first) return wrong(item, at_ - item, "the range runs backwards");
            ids |= CpuSet::range(*first, *last);
            const std::size_t end = at_;
            if (op == Op::list) skip_spaces();
            if (at_ == end && peek() == ',') ++at_;
            if (at_ > end && is_digit(peek())) continue;
            at_ = end;
            break;
        }
        if (is_word(peek()))
            return wrong(from, at_ + 1 - from, "a number is followed by a letter",
                         peek() == 'x' || peek() == 'X'
                             ? "masks are not read here: write CPU numbers, like 0-3"
                             : "CPU numbers are decimal");
        auto expr = leaf(op, begin);
        expr.ids = std::move(ids);
        return expr;
    }

    std::optional<unsigned> number() {
        unsigned value = 0;
        bool fits = true;
        for (; is_digit(peek()); ++at_) {
            if (value <= CpuSet::max_cpu) value = value * 10 + static_cast<unsigned>(peek() - '0');
            fits = fits && value <= CpuSet::max_cpu;
        }
        return fits ? std::optional(value) : std::nullopt;
    }

    CpuExpr leaf(Op op, std::size_t begin) const {
        return {.op = op, .offset = begin, .length = at_ - begin};
    }

    static Parsed join(Op op, CpuExpr left, Parsed right) {
        if (!right) return right;
        CpuExpr expr{.op = op, .offset = left.offset, .length = right->offset + right->length - left.offset};
        expr.children.push_back(std::move(left));
        expr.children.push_back(std::move(*right));
        return expr;
    }

    static std::unexpected<CpuExprError> wrong(std::size_t offset, std::size_t length, std::string message,
                                               std::string hint = {}) {
        return std::unexpected(
            CpuExprError{offset, std::max<std::size_t>(length, 1), std::move(message), std::move(hint)});
    }

    [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    void skip_spaces() {
        while (peek() == ' ' || peek() == '\t' || peek() == '\n' || peek() == '\r')
            ++at_;
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

bool is_sum(Op op) { return op == Op::unite || op == Op::subtract; }

/// With parentheses only where the text would be read as another tree without: then it is nested no deeper
/// than the text it was read from, and can be read again however long that was.
std::string child_text(const CpuExpr& parent, std::size_t which) {
    const CpuExpr& child = parent.children[which];
    const bool is_right = which > 0;
    const bool is_product = child.op == Op::intersect;
    bool loose = is_right && is_sum(child.op);
    if (parent.op == Op::intersect) loose = is_sum(child.op) || (is_right && is_product);
    if (parent.op == Op::complement) loose = is_sum(child.op) || is_product;
    return loose ? "(" + to_string(child) + ")" : to_string(child);
}

} // namespace

Parsed parse_cpu_expr(std::string_view text) {
    if (text.size() > max_text)
        return std::unexpected(CpuExprError{max_text, 1, "the expression is longer than 4096 bytes", {}});
    if (const auto nul = text.find('\0'); nul != std::string_view::npos)
        return std::unexpected(CpuExprError{nul, 1, "a NUL byte", {}});
    return Parser(text).whole();
}

bool has_word(const CpuExpr& expr, Op word) {
    return expr.op == word ||
           std::ranges::any_of(expr.children, [&](const CpuExpr& child) { return has_word(child, word); });
}

std::string to_string(const CpuExpr& expr) {
    switch (expr.op) {
    case Op::list:
        return expr.ids.to_list();
    case Op::kind:
        return "kind:" + expr.name;
    case Op::nic:
        return expr.name.empty() ? "nic" : "nic:" + expr.name;
    case Op::node:
    case Op::socket:
    case Op::die:
    case Op::cluster:
    case Op::llc:
    case Op::core:
        return std::string(group_name(expr.op)) + ":" + expr.ids.to_list();
    case Op::unite:
        return child_text(expr, 0) + " | " + child_text(expr, 1);
    case Op::intersect:
        return child_text(expr, 0) + " & " + child_text(expr, 1);
    case Op::subtract:
        return child_text(expr, 0) + " - " + child_text(expr, 1);
    case Op::complement:
        return "!" + child_text(expr, 0);
    default:
        return std::string(std::ranges::find(plain_words, expr.op, &Word::op)->text);
    }
}

} // namespace affinityd::policy
