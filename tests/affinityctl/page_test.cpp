// SPDX-License-Identifier: Apache-2.0
// Lines that fit: no terminal wraps what is shown.
#include "affinityctl/present/document.hpp"

#include <sstream>
#include <stdexcept>
#include <utility>

#include <gtest/gtest.h>

namespace affinityctl {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);)
        lines.push_back(line);
    return lines;
}

TEST(Page, WordsAreKeptWholeAndLaterLinesAreIndented) {
    EXPECT_EQ(wrapped("one two three four", "* ", {.width = 11}), "* one two\n  three\n  four\n");
    EXPECT_EQ(wrapped("one two three", "* ", {}), "* one two three\n");
    EXPECT_EQ(wrapped("", "* ", {.width = 10}), "* \n");
    EXPECT_EQ(wrapped("a\nb", "- ", {.width = 10}), "- a\n  b\n");
}

TEST(Page, AWordLongerThanALineIsBroken) {
    for (const auto& line : lines_of(wrapped(std::string(50, 'x') + " end", "> ", {.width = 20})))
        EXPECT_LE(columns_of(line), 20U);
    // Narrower than what comes first: it ends all the same.
    EXPECT_FALSE(wrapped("some words", "    -> ", {.width = 3}).empty());
}

TEST(Page, CharactersAreCountedAndNeverCutInHalf) {
    EXPECT_EQ(columns_of("grüße"), 5U);
    EXPECT_EQ(columns_of("\u4e2d\u6587"), 4U) << "wide ones";
    EXPECT_EQ(cut("grüße", 4, {.unicode = true}), "grü\u2026");
    EXPECT_EQ(cut("grüße", 4, {}), "grü~");
    EXPECT_EQ(cut("grüße", 5, {}), "grüße");
    EXPECT_EQ(cut("\u4e2d\u6587\u4e2d", 4, {}), "\u4e2d~") << "a wide one does not fit the last column";
}

using nlohmann::json;

constexpr Field columns[] = {{"name", "NAME", "text", "its name"},
                             {"n", "N", "count", "a number"},
                             {"none", "NONE", "text*", "what no row has"},
                             {"why", "WHY", "text", "a cause"}};
constexpr Field prose[] = {{"name", "NAME", "text", "its name"}, {"why", "WHY", "prose", "a cause"}};

std::string text_of_table(Document::Table table, const Page& page) {
    Document document;
    document.add(std::move(table));
    return to_text(document, page);
}

TEST(Table, CellsOfAnyBytesStayInTheirColumn) {
    const Document::Table table{
        prose, {{{"name", "\x1b[2Ja\nb\u202e"}, {"why", "0"}}, {{"name", "plain"}, {"why", 1}}}};
    EXPECT_EQ(text_of_table(table, {}), "NAME               WHY\n"
                                        "\\x1b[2Ja\\nb\\u202e  0\n"
                                        "plain              1\n");
}

TEST(Table, AnEmptyColumnGoesAndTheWidestGivesWay) {
    const Document::Table table{columns,
                                {{{"name", "short"}, {"n", 1}, {"why", std::string(200, 'w')}},
                                 {{"name", std::string(60, 'n')}, {"n", 12345}, {"why", "x"}}}};
    for (const std::size_t width : {30, 40, 80, 120, 200})
        for (const auto& line : lines_of(text_of_table(table, {.width = width})))
            EXPECT_LE(columns_of(line), width);
    EXPECT_NE(text_of_table(table, {.width = 80}).find(std::string(60, 'n') + "  12345"), std::string::npos)
        << "rows are told apart by their first cell, and numbers stay whole";
    EXPECT_EQ(text_of_table(table, {.width = 80}).find("NONE"), std::string::npos);
    EXPECT_NE(text_of_table(table, {}).find(std::string(200, 'w')), std::string::npos);
}

TEST(Table, ProseIsWrappedBelowItself) {
    const Document::Table table{prose, {{{"name", "a"}, {"why", "one two three four five six seven"}}}};
    EXPECT_EQ(text_of_table(table, {.width = 30}), "NAME  WHY\n"
                                                   "a     one two three four five\n"
                                                   "      six seven\n");
}

TEST(Table, IsFoldedBetweenColumnsAndLosesNothing) {
    constexpr Field loads[] = {{"load", "LOAD", "text", ""},
                               {"where", "WHERE", "text", ""},
                               {"ms", "MS", "text", ""},
                               {"change", "CHANGE", "text", ""}};
    Document::Table table{loads,
                          {{{"load", "sin"},
                            {"where", "two cores"},
                            {"ms", "7.07 (7.06 to 7.10)"},
                            {"change", "no difference shown"}},
                           {{"load", "sin"}, {"where", "alone"}, {"ms", "7.03 (7.01 to 7.05)"}}}};
    table.folded = true;
    table.keys = 2;
    EXPECT_EQ(text_of_table(table, {.width = 57}), text_of_table(table, {})) << "it fits";
    EXPECT_EQ(text_of_table(table, {.width = 56}), "LOAD  WHERE      MS\n"
                                                   "sin   two cores  7.07 (7.06 to 7.10)\n"
                                                   "sin   alone      7.03 (7.01 to 7.05)\n"
                                                   "\n"
                                                   "LOAD  WHERE      CHANGE\n"
                                                   "sin   two cores  no difference shown\n"
                                                   "sin   alone      -\n");
    for (const auto& line : lines_of(text_of_table(table, {.width = 20})))
        EXPECT_LE(columns_of(line), 20U) << "a column that is too wide by itself is cut";
}

TEST(Schema, NamesTypesAndMissingKeys) {
    static constexpr Field inner[] = {{"cpu", "", "count", "a CPU"}};
    constexpr Field outer[] = {{"name", "NAME", "text", "its name"},
                               {"rates", "", "number{}?*", "by CPU"},
                               {"places", "", "object[]", "places", inner},
                               {"", "SHOWN", "text", ""}};
    EXPECT_EQ(schema_of(outer, false),
              json::parse(R"({"type": "object", "required": ["name", "places"], "properties": {
        "name": {"type": "string", "description": "its name"},
        "rates": {"type": ["object", "null"], "additionalProperties": {"type": "number"}, "description": "by CPU"},
        "places": {"type": "array", "description": "places", "items": {"type": "object", "required": ["cpu"],
            "properties": {"cpu": {"type": "integer", "description": "a CPU"}}}}}})"));
    EXPECT_EQ(record(outer, {"a", json(json::value_t::discarded), json::array()}),
              json::parse(R"({"name": "a", "places": []})"));
    EXPECT_THROW(record(outer, {"a"}), std::logic_error);
}

TEST(Age, GrowsWithItsUnit) {
    using namespace std::chrono_literals;
    const WallTime now = std::chrono::system_clock::now();
    EXPECT_EQ(age_of(now, now), "0 s");
    EXPECT_EQ(age_of(now + 1h, now), "0 s") << "somebody has set the clock";
    EXPECT_EQ(age_of(now - 119s, now), "119 s");
    EXPECT_EQ(age_of(now - 2min, now), "2 min");
    EXPECT_EQ(age_of(now - 119min, now), "119 min");
    EXPECT_EQ(age_of(now - 2h, now), "2 h");
    EXPECT_EQ(age_of(now - 47h, now), "47 h");
    EXPECT_EQ(age_of(now - 72h, now), "3 days");
}

TEST(Age, TimesAreReadAsTheyAreWritten) {
    EXPECT_EQ(time_in("1970-01-01T00:01:00Z"), WallTime{std::chrono::minutes(1)});
    EXPECT_EQ(time_in(60U), WallTime{std::chrono::minutes(1)});
    for (const nlohmann::json& bad :
         {nlohmann::json(), nlohmann::json("yesterday"), nlohmann::json("1970-01-01T00:00:00"),
          nlohmann::json(-1), nlohmann::json::array()})
        EXPECT_EQ(time_in(bad), std::nullopt) << bad;
}

} // namespace
} // namespace affinityctl
