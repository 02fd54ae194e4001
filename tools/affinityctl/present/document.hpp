// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/globals.hpp"
#include "affinityctl/present/page.hpp"
#include "base/cpu_set.hpp"

#include <cstdint>
#include <expected>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace affinityctl {

struct Field;
using Fields = std::span<const Field>;

/// A value of a verb's answer: its key in JSON, its column in a table, its line in --json-schema and in the
/// manual are all made from here.
struct Field {
    const char* key;     ///< "": the column alone
    const char* heading; ///< of the column; "": in JSON alone
    /// text, prose (a text that is wrapped, not cut), cpus ("0-3,8"), time, count, number, flag, interval,
    /// change, object or any. Then "[]": a list of these, "{}": these by name; "?": or null; "*": the key may
    /// be missing.
    const char* type;
    const char* help;                                         ///< one line, with the unit of a number
    Fields parts{};                                           ///< of an object
    std::string (*show)(const nlohmann::json& row) = nullptr; ///< the cell, where the value alone is not it
    const char* metric =
        ""; ///< its name among metrics; "": it is none; of what only grows, it ends in _total
};

/// Members of an interval and of a change, which is relative, as experiments give them; cells show them in
/// words: "3.53 (3.41 to 3.66)", "+75 % (+71 to +79)", "no difference shown".
extern const Fields interval_fields, change_fields;

/// An object with these values, one for each field that has a key, in their order. json(value_t::discarded)
/// leaves its key out.
[[nodiscard]] nlohmann::json record(Fields fields, std::initializer_list<nlohmann::json> values);

/// JSON Schema of an object with these fields, or of a list of such objects.
[[nodiscard]] nlohmann::json schema_of(Fields fields, bool is_list);

/// A value as the text of a cell: "-" for null and empty texts, "yes" and "no" for flags.
[[nodiscard]] std::string cell(const nlohmann::json& value);
/// "3.53", "0.44", "0.0041", "540"
[[nodiscard]] std::string figure_words(double value);
/// The same for a member, which may be missing.
[[nodiscard]] std::string text_of(const nlohmann::json& object, const char* key);
/// The texts of a list; "" for none.
[[nodiscard]] std::string joined(const nlohmann::json& list, std::string_view between);
/// Null for what is not there or empty.
template <class T>
[[nodiscard]] nlohmann::json or_null(const std::optional<T>& value) {
    return value ? nlohmann::json(*value) : nlohmann::json();
}
[[nodiscard]] nlohmann::json or_null(const std::string& text);
[[nodiscard]] nlohmann::json or_null(const std::optional<affinityd::CpuSet>& cpus);

/// Members of the daemon's answers. Missing members, or of another type, are empty or 0.
[[nodiscard]] std::string text(const nlohmann::json& object, const char* key);
[[nodiscard]] std::uint64_t count(const nlohmann::json& object, const char* key);
[[nodiscard]] const nlohmann::json& list(const nlohmann::json& object, const char* key);
[[nodiscard]] affinityd::CpuSet cpus(const nlohmann::json& object, const char* key);
[[nodiscard]] nlohmann::json member(const nlohmann::json& object, const char* key);

/// The answer of a verb: the value that --json prints, and blocks, which text and pictures are made of. Texts
/// may be any bytes: the renderers escape what a terminal or a viewer would act upon.
struct Document {
    enum class Look { plain, bold, good, bad, name, held, mark };
    struct Span {
        std::string text;
        Look look = Look::plain;
    };
    /// A paragraph that is wrapped. The first line begins with `first`, the others with as many spaces.
    struct Line {
        std::vector<Span> spans;
        std::string first{};
        bool as_is = false; ///< not wrapped: for copying
    };
    /// A finding, and the command that mends it or tells more; "": there is none.
    struct Problem {
        std::string sentence, command{};
        std::string first{"  * "};
    };
    /// Lines that are not wrapped; with `may_be_cut`, they end where the page does.
    struct Verbatim {
        std::string text;
        bool may_be_cut = false;
    };
    struct Table {
        Fields fields;
        nlohmann::json rows = nlohmann::json::array();
        std::vector<std::string_view> columns{}; ///< by their headings; empty: all
        std::vector<std::string> headings{};     ///< instead of fields: the rows are lists of texts
        bool folded = false;  ///< rather several tables below each other than cells that are cut
        std::size_t keys = 1; ///< the columns by which rows are told apart, which each of those has
    };
    /// Shares of 0 to 1 by row and column.
    struct Grid {
        std::string note; ///< the scale: "in % of the row, by core"
        std::vector<std::string> rows, columns;
        std::vector<std::vector<std::optional<double>>> shares; ///< no value: an empty cell
        std::vector<std::vector<std::string>> texts{};          ///< in the cells; empty: the share in percent
    };
    struct Map {
        std::string title, corner; ///< "Arrives (down), read (across)", "read on"
        std::vector<Grid> grids;   ///< from fine to coarse: the first that fits is drawn
    };
    struct Point {
        double x = 0, y = 0;
        std::optional<double> low{}, high{}; ///< its interval
        bool failed = false;                 ///< there is no y
        std::string label{};                 ///< of a bar
    };
    struct Series {
        std::string name;
        std::vector<Point> points;
    };
    /// Points over an axis, or bars.
    struct Chart {
        enum class Kind { points, lines, bars };
        std::string title, unit; ///< of y
        Kind kind = Kind::points;
        std::vector<Series> series;
        std::string (*x_text)(double) = nullptr; ///< for both ends of the axis
        std::optional<Point> expected{};         ///< a band behind the points: low, y (the median), high
    };
    /// Chains of things, such as those that a packet passes, with words on the arrows between them.
    struct Ways {
        struct Stop {
            std::string kind, name;
            std::string arrow{}; ///< on the arrow that leads here
        };
        std::string title, note;
        std::vector<std::vector<Stop>> ways;
    };
    /// A picture of its own making.
    struct Drawing {
        double width = 0, height = 0;
        std::string svg;
    };
    enum class Where { both, text, picture };
    struct Block {
        std::variant<Line, Problem, Verbatim, Table, Map, Chart, Ways, Drawing> is;
        Where where = Where::both;
        bool gap = false; ///< an empty line before
    };

    nlohmann::json value = nlohmann::json::object();
    std::vector<Block> blocks{};
    std::vector<std::string> complaints{}; ///< for standard error
    std::string title{"affinityctl"};      ///< of the picture
    std::string source{};                  ///< the host that the picture is of, and when; "": here and now
    std::string picture{};                 ///< its file; "": none is wanted; "-": standard output
    bool is_page = false;                  ///< the picture is an HTML page
    Exit code = exit_ok;
    int indent = 2;          ///< of --json; -1: all on one line
    bool by_columns = false; ///< without a terminal, COLUMNS is the width of its lines
    bool may_page = false;   ///< long texts go through a pager
    bool is_silent = false;  ///< no text is printed

    template <class Part>
    Block& add(Part part, Where where = Where::both) {
        return blocks.emplace_back(Block{std::move(part), where});
    }
    Block& line(std::string text, std::string first = {}) {
        return add(Line{{{std::move(text)}}, std::move(first)});
    }
    Block& heading(std::string text) { return add(Line{{{std::move(text), Look::bold}}}); }
    void verbatim(std::string text) { add(Verbatim{std::move(text)}); }
    /// After an empty line.
    void paragraph(std::string text) { line(std::move(text)).gap = true; }
};

/// A document, or why there is none.
using Outcome = std::expected<Document, CallError>;

/// A cell of a map in words: "12", "<1", "" where there is none.
[[nodiscard]] std::string text_of_cell(const Document::Grid& grid, std::size_t row, std::size_t column);

[[nodiscard]] std::string to_text(const Document& document, const Page& page);
[[nodiscard]] std::string to_svg(const Document& document);
/// A page that needs nothing from anywhere: no script, and every text is escaped. A line that is bold as a
/// whole begins a section.
[[nodiscard]] std::string to_html(const Document& document);
/// The heading of a table and the texts of its rows, in the columns that it shows; not escaped.
[[nodiscard]] std::vector<std::vector<std::string>> cells_of(const Document::Table& table);
/// JSON in valid UTF-8: bytes that are not are replaced, and characters that a terminal would act upon are
/// escaped.
[[nodiscard]] std::string dump(const nlohmann::json& value, int indent = -1);

} // namespace affinityctl
