// SPDX-License-Identifier: Apache-2.0
#include "machine/machines.hpp"
#include "topology/latencies.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace affinityd::topology {
namespace {

using machine::test::two_sockets;

TEST(Latencies, AreTheSameBothWays) {
    Latencies latencies(CpuSet{0, 2, 5});
    EXPECT_EQ(latencies.pairs(), 3U);
    EXPECT_EQ(latencies.measured(), 0U);
    latencies.set(5, 0, 21.5);
    EXPECT_EQ(latencies.ns(0, 5), 21.5);
    EXPECT_EQ(latencies.ns(5, 0), 21.5);
    EXPECT_EQ(latencies.at(2, 0), 21.5);
    EXPECT_FALSE(latencies.ns(0, 2));
    EXPECT_FALSE(latencies.ns(0, 0));
    EXPECT_FALSE(latencies.ns(0, 1)) << "CPU 1 is none of them";
    EXPECT_EQ(latencies.measured(), 1U);
}

TEST(Latencies, TakeNothingThatIsNoTime) {
    Latencies latencies(CpuSet{0, 1});
    for (const double ns : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()})
        latencies.set(0, 1, ns);
    latencies.set(0, 0, 5);
    latencies.set(0, 7, 5);
    EXPECT_EQ(latencies.measured(), 0U);
}

TEST(Latencies, OfNoCpuAreNone) {
    EXPECT_EQ(Latencies().pairs(), 0U);
    EXPECT_EQ(Latencies(CpuSet{3}).pairs(), 0U);
    EXPECT_EQ(Latencies(CpuSet::range(0, 1999)).cpus().size(), Latencies::most_cpus);
}

TEST(Latencies, KnowTheirMachineAgain) {
    const auto machine = two_sockets();
    const CpuSet all = CpuSet::range(0, 7);
    const Latencies latencies(all, describe(machine, all, "Model A"));
    EXPECT_TRUE(latencies.is_of(machine, "Model A"));
    EXPECT_TRUE(latencies.is_of(two_sockets(CpuSet{1, 6}), "Model A")) << "CPUs may be offline meanwhile";
    EXPECT_FALSE(latencies.is_of(machine, "Model B"));
    auto other = machine;
    other.cpus[3].core = 7;
    EXPECT_FALSE(latencies.is_of(other, "Model A"));
    EXPECT_FALSE(Latencies(all).is_of(machine, "")) << "a foreign table is of no machine";
}

TEST(LatencyTable, IsALowerTriangle) {
    const auto read = latencies_from_csv(",,\n20.5,,\n21, 22 ,\n");
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(read->cpus(), (std::vector<unsigned>{0, 1, 2}));
    EXPECT_EQ(read->ns(0, 1), 20.5);
    EXPECT_EQ(read->ns(1, 2), 22);
    EXPECT_EQ(read->measured(), 3U);
}

TEST(LatencyTable, IsASquareOfWhichTheMeanCounts) {
    const auto read = latencies_from_csv("\xef\xbb\xbf,10,30\r\n20,0,\r\n32,,\r\n\r\n\n");
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(read->ns(0, 1), 15);
    EXPECT_EQ(read->ns(0, 2), 31);
    EXPECT_FALSE(read->ns(1, 2)) << "not given";
}

struct WrongTable {
    std::string text, place, message;
};

class WrongTables : public ::testing::TestWithParam<WrongTable> {};

TEST_P(WrongTables, AreAnErrorWithTheirLine) {
    const auto read = latencies_from_csv(GetParam().text);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().subject, GetParam().place) << read.error().to_string();
    EXPECT_NE(read.error().message.find(GetParam().message), std::string::npos) << read.error().to_string();
    for (const char letter : read.error().to_string())
        EXPECT_GE(letter, ' ') << "nothing that a terminal acts upon";
}

INSTANTIATE_TEST_SUITE_P(
    Texts, WrongTables,
    ::testing::Values(
        WrongTable{"", "", "found nothing"}, WrongTable{"\n\n\n", "", "found nothing"},
        WrongTable{"5\n", "line 1", "commas"}, WrongTable{"no table at all", "line 1", "commas"},
        WrongTable{",\n,\n", "", "no pair"}, WrongTable{",\n1,\n,\n", "line 3", "as many rows"},
        WrongTable{",,\n1,,\n", "line 2", "as many rows"}, WrongTable{",,\n1,\n2,3,\n", "line 2", "3 cells"},
        WrongTable{",,\n1,,\n2,3,,\n", "line 3", "3 cells"}, WrongTable{",\n1\n", "line 2", "2 cells"},
        WrongTable{",\nfast,\n", "line 2, column 1", "'fast'"},
        WrongTable{",\n1.5ns,\n", "line 2, column 1", "'1.5ns'"},
        WrongTable{",\nnan,\n", "line 2, column 1", "nanoseconds"},
        WrongTable{",\ninf,\n", "line 2, column 1", "nanoseconds"},
        WrongTable{",\n1e999,\n", "line 2, column 1", "nanoseconds"},
        WrongTable{",\n0,\n", "line 2, column 1", "above 0"},
        WrongTable{",\n-3,\n", "line 2, column 1", "above 0"},
        WrongTable{",\n2e9,\n", "line 2, column 1", "up to one second"},
        WrongTable{",\n1,4\n", "line 2, column 2", "diagonal"}, WrongTable{"0;1\n2;3\n", "line 1", "commas"},
        WrongTable{",0,1\n0,,5\n1,5,\n", "line 1, column 2", "above 0"},
        WrongTable{",\n\x1b[31m\x07,\n", "line 2, column 1", "nanoseconds"},
        WrongTable{std::string(",\n\0,\n1,", 7), "line 3", "as many rows"},
        WrongTable{std::string(Latencies::most_cpus, ',') + "\n", "line 1", "at most 1024"},
        WrongTable{std::string(5000000, ','), "line 1", "at most 1024"},
        WrongTable{std::string(most_csv_bytes + 1, '1'), "", "not that long"},
        WrongTable{",\n" + std::string(100000, '9') + ",\n", "line 2, column 1", "..."}));

TEST(KeptLatencies, AreReadAsTheyWereWritten) {
    const auto machine = two_sockets();
    const CpuSet cpus{0, 1, 5};
    Latencies latencies(cpus, describe(machine, cpus, "Model \"A\"\n"));
    latencies.set(0, 1, 7.5);
    latencies.set(5, 1, 123.4);
    const auto text = to_json(latencies);
    const auto read = latencies_from_json(text);
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(*read, latencies) << text;
    EXPECT_TRUE(read->is_of(machine, "Model \"A\"\n"));
}

TEST(KeptLatencies, HaveFourDigits) {
    Latencies latencies(CpuSet{0, 1, 2});
    latencies.set(0, 1, 20.123456);
    latencies.set(0, 2, 123456.7);
    const auto read = latencies_from_json(to_json(latencies));
    ASSERT_TRUE(read);
    EXPECT_NEAR(*read->ns(0, 1), 20.12, 1e-4);
    EXPECT_NEAR(*read->ns(0, 2), 123457, 1);
    EXPECT_LT(to_json(latencies).size(), 80U);
}

TEST(KeptLatencies, ThatAreOddAreAnError) {
    for (const char* text :
         {"", "[]", "{}", R"({"cpus":"0-1"})", R"({"cpus":7,"ns":[[],[1]]})", R"({"cpus":"0","ns":[[]]})",
          R"({"cpus":"0-1","ns":[[]]})", R"({"cpus":"0-1","ns":[[1],[]]})", R"({"cpus":"0-1","ns":[[],7]})",
          R"({"cpus":"x","ns":[[],[1]]})", R"({"cpus":"0-1000000","ns":[]})",
          R"({"cpus":"0-1","ns":[[],[1]],"places":[[0,0]]})",
          R"({"cpus":"0-1","ns":[[],[1]],"places":[0,0]})",
          R"({"cpus":"0-1","ns":[[],[1]],"places":[[0,0],["a",0]]})", R"({"cpus":"0-1","ns":[[],["?"]]})",
          R"({"cpus":"0-1","ns":[[],[null]]})"})
        EXPECT_FALSE(latencies_from_json(text)) << text;
    const auto read = latencies_from_json(R"({"cpus":"0-2","ns":[[],[1],[null,null]],"model":7,"more":{}})");
    ASSERT_TRUE(read);
    EXPECT_EQ(read->measured(), 1U);
}

} // namespace
} // namespace affinityd::topology
