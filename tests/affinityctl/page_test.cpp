// SPDX-License-Identifier: Apache-2.0
// Lines that fit: no terminal wraps what is shown.
#include "affinityctl/present/page.hpp"
#include "affinityctl/views/table.hpp"

#include <sstream>

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

TEST(Table, TheWidestColumnGivesWay) {
    Table table({"NAME", "N", "WHY"});
    table.add({"short", "1", std::string(200, 'w')});
    table.add({std::string(60, 'n'), "12345", "x"});
    for (const std::size_t width : {30, 40, 80, 120, 200})
        for (const auto& line : lines_of(table.to_string(Page{.width = width})))
            EXPECT_LE(columns_of(line), width);
    EXPECT_NE(table.to_string(Page{.width = 80}).find(std::string(60, 'n') + "  12345"), std::string::npos)
        << "rows are told apart by their first cell, and numbers stay whole";
    EXPECT_NE(table.to_string(Page{}).find(std::string(200, 'w')), std::string::npos);
}

TEST(Table, IsFoldedBetweenColumnsAndLosesNothing) {
    Table table({"LOAD", "WHERE", "MS", "CHANGE"});
    table.add({"sin", "two cores", "7.07 (7.06 to 7.10)", "no difference shown"});
    table.add({"sin", "alone", "7.03 (7.01 to 7.05)"});
    EXPECT_EQ(table.folded({}, 2), table.to_string(Page{}))
        << "one line for each row where nothing limits it";
    EXPECT_EQ(table.folded({.width = 57}, 2), table.to_string(Page{})) << "it fits";
    EXPECT_EQ(table.folded({.width = 56}, 2), "LOAD  WHERE      MS\n"
                                              "sin   two cores  7.07 (7.06 to 7.10)\n"
                                              "sin   alone      7.03 (7.01 to 7.05)\n"
                                              "\n"
                                              "LOAD  WHERE      CHANGE\n"
                                              "sin   two cores  no difference shown\n"
                                              "sin   alone\n");
    for (const auto& line : lines_of(table.folded({.width = 20}, 2)))
        EXPECT_LE(columns_of(line), 20U) << "a column that is too wide by itself is cut";
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
