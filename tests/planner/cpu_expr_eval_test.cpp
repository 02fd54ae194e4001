// SPDX-License-Identifier: Apache-2.0
#include "machines.hpp"
#include "planner/slots.hpp"

namespace affinityd::planner {
namespace {

const std::map<std::string, CpuSet, std::less<>> nics{
    {"eth0", CpuSet::range(0, 3)}, {"eth1", CpuSet::range(4, 7)}, {"br-lan", CpuSet{0}}};

topology::Topology machine() {
    auto topology = test::two_sockets(CpuSet{7});
    topology.isolated = CpuSet{5};
    topology.nohz_full = CpuSet{6};
    topology.housekeeping = topology.online - topology.isolated - topology.nohz_full;
    topology.kinds = {{"performance", 0, CpuSet{0, 1}}, {"efficiency", 1, CpuSet{2, 3}}};
    return topology;
}

TEST(CpuExpr, EachOperatorAndAtomNamesItsCpus) {
    const std::pair<const char*, const char*> cases[] = {
        {"0-3,6", "0-3,6"},
        {"7", "7"},
        {"all", "0-6"},
        {"online", "0-6"},
        {"isolated", "5"},
        {"nohz_full", "6"},
        {"housekeeping", "0-4"},
        {"smt", "1,3,5"},
        {"node:1", "4-6"},
        {"node:0,1", "0-6"},
        {"socket:0", "0-3"},
        {"package:0", "0-3"},
        {"llc:1", "4-6"},
        {"core:0,3", "0-1,6"},
        {"kind:efficiency", "2-3"},
        {"nic", "4-5"},
        {"nic:eth1", "4-7"},
        {"nic:br-lan", "0"},
        {"nic:eth*", "0-7"},
        {"0 | 2", "0,2"},
        {"0,2,node:1", "0,2,4-6"},
        {"0-3 & 2-5", "2-3"},
        {"0-3 - 2", "0-1,3"},
        {"!node:0", "4-6"},
        {"!smt & node:0", "0,2"},
        {"0 | 1 & 1 - 1", "0"},
        {"(0 | 1) & 1", "1"},
        {"!(smt | node:1)", "0,2"},
        {"llc:0 & !smt - housekeeping", ""},
        {"0-3-1", "0,2-3"},
        {"all - 6-255", "0-5"},
        {"!node:1,7", "0-3"},
        {"all - socket:9 - core:40 - llc:7 - die:5 - kind:middle - nic:eth9", "0-6"},
        {"0-3 & !(1 | node:7)", "0,2-3"},
        {"all - (64-255 - 2)", "0-6"},
    };
    for (const auto& [text, expected] : cases) {
        const auto expr = policy::parse_cpu_expr(text);
        ASSERT_TRUE(expr) << text << ": " << expr.error().message;
        const auto cpus = evaluate(*expr, machine(), nics, CpuSet{4, 5});
        ASSERT_TRUE(cpus) << text << ": " << cpus.error().message;
        EXPECT_EQ(cpus->to_list(), expected) << text;
        const auto again = policy::parse_cpu_expr(policy::to_string(*expr));
        ASSERT_TRUE(again) << policy::to_string(*expr);
        EXPECT_EQ(*again, *expr) << "the canonical text means the same";
    }
}

TEST(CpuExpr, CanonicalTextIsNestedNoDeeperThanWhatWasRead) {
    const std::pair<const char*, const char*> cases[] = {
        {"0|1-2|3", "0 | 1-2 | 3"},     {"(0|1)|2", "0 | 1 | 2"},       {"0|(1|2)", "0 | (1 | 2)"},
        {"0 - (1 - 2)", "0 - (1 - 2)"}, {"(0 - 1) - 2", "0 - 1 - 2"},   {"0&1|2&3", "0 & 1 | 2 & 3"},
        {"0&(1|2)", "0 & (1 | 2)"},     {"(0|1)&2", "(0 | 1) & 2"},     {"0&(1&2)", "0 & (1 & 2)"},
        {"!(0|1)", "!(0 | 1)"},         {"!(0&1)", "!(0 & 1)"},         {"!!smt", "!!smt"},
        {"!0 & 1", "!0 & 1"},           {"0 | (1 - 2)", "0 | (1 - 2)"}, {"((0))", "0"},
    };
    for (const auto& [text, expected] : cases)
        EXPECT_EQ(policy::to_string(*policy::parse_cpu_expr(text)), expected) << text;
    for (const char* joint : {" - ", " | ", " & "}) {
        std::string text = "0";
        for (int i = 0; i < 300; ++i)
            text += std::string(joint) + "smt";
        const auto expr = policy::parse_cpu_expr(text);
        ASSERT_TRUE(expr) << joint;
        EXPECT_EQ(policy::to_string(*expr), text) << "a long chain is not a deep one";
    }
}

TEST(CpuExpr, APartThatThisMachineLacksIsNamedWithItsPlace) {
    const std::tuple<const char*, std::size_t, const char*, const char*> cases[] = {
        {"0 | node:3", 4, "no NUMA node 3", "0-1"},        {"socket:9", 0, "no socket 9", "0-1"},
        {"llc:0,5", 0, "last-level-cache group 5", "0-1"}, {"die:0", 0, "no die 0", "none"},
        {"4-9", 0, "CPU 8-9 does not exist", "0-7"},       {"kind:middle", 0, "'middle'", "performance"},
        {"nic:eth9", 0, "no interface 'eth9'", "br-lan"},  {"node:7 - node:8", 0, "no NUMA node 7", "0-1"},
    };
    for (const auto& [text, offset, message, hint] : cases) {
        const auto cpus = evaluate(*policy::parse_cpu_expr(text), machine(), nics, {});
        ASSERT_FALSE(cpus) << text;
        EXPECT_EQ(cpus.error().offset, offset) << text;
        EXPECT_NE(cpus.error().message.find(message), std::string::npos) << cpus.error().message;
        EXPECT_NE(cpus.error().hint.find(hint), std::string::npos) << cpus.error().hint;
    }
}

TEST(CpuExpr, FaultsInTheTextAreFoundAtTheirPlace) {
    const std::pair<const char*, std::size_t> cases[] = {
        {"", 0},     {"0-", 2},      {"3-1", 0},   {"llc", 0},   {"llc:x", 4}, {"(0", 0},
        {"0)", 1},   {"0 &", 3},     {"cores", 0}, {"0 ^ 1", 2}, {"nic:", 4},  {"99999999", 0},
        {"0x10", 0}, {"llc:1 2", 6}, {"& 1", 0},   {"kind", 0},
    };
    for (const auto& [text, offset] : cases) {
        const auto expr = policy::parse_cpu_expr(text);
        ASSERT_FALSE(expr) << text;
        EXPECT_EQ(expr.error().offset, offset) << text << ": " << expr.error().message;
        EXPECT_FALSE(expr.error().message.empty());
    }
    EXPECT_FALSE(policy::parse_cpu_expr(std::string(100, '(') + "0" + std::string(100, ')')));
    EXPECT_FALSE(policy::parse_cpu_expr(std::string(5000, '0')));
}

} // namespace
} // namespace affinityd::planner
