// SPDX-License-Identifier: Apache-2.0
// The page, the map and the picture, on small and large machines.
#include "affinityctl/locality/report.hpp"
#include "locality/locality.hpp"
#include "machine/machines.hpp"

#include <algorithm>

#include <gtest/gtest.h>

namespace affinityctl {

using namespace affinityd::locality;
namespace {

using affinityd::CpuSet;
using affinityd::machine::test::two_sockets;
using affinityd::topology::Topology;

/// Nodes of 32 CPUs, cores of two threads next to each other, an LLC group of 16 CPUs.
Topology large(unsigned cpus) {
    Topology topology;
    topology.online = CpuSet::range(0, cpus - 1);
    for (unsigned cpu = 0; cpu < cpus; ++cpu)
        topology.cpus.push_back({cpu, {}, {}, {}, {}, cpu / 32, {}, CpuSet::range(cpu & ~1U, cpu | 1U)});
    for (unsigned first = 0; first < cpus; first += 16)
        topology.caches.push_back(
            {3, affinityd::topology::Cache::Type::unified, 1U << 20, CpuSet::range(first, first + 15)});
    for (unsigned first = 0; first < cpus; first += 32)
        topology.nodes.push_back({first / 32, CpuSet::range(first, first + 31), {}, {}});
    return topology;
}

ReadMatrix diagonal(unsigned cpus) {
    ReadMatrix matrix;
    for (unsigned cpu = 0; cpu < cpus; ++cpu)
        matrix[{cpu, cpu}] = 10;
    return matrix;
}

std::size_t widest(const std::string& text) {
    std::size_t most = 0;
    for (std::size_t at = 0; at < text.size();) {
        const auto end = std::min(text.find('\n', at), text.size());
        most = std::max(most, columns_of(text.substr(at, end - at)));
        at = end + 1;
    }
    return most;
}

LocalityReport report(const Nearness& near) {
    LocalityReport report{.subject = "unit n\u202e.service",
                          .seen = {},
                          .figures = {},
                          .arrivals = {},
                          .facts = {},
                          .busiest = {}};
    report.seen.seconds = 10;
    report.seen.has_other_protocols = false;
    report.seen.names = {{10, "ngi\033[31mnx"}, {11, "<b>\n"}};
    for (const int pid : {10, 11})
        for (const unsigned arrival : {0U, 1U})
            report.seen.counts.push_back(
                {.pid = pid, .arrival = arrival, .reader = pid == 10 ? 0U : 5U, .reads = 5000});
    const auto all = [](int) { return true; };
    report.figures = figures_of(report.seen, near, all);
    report.arrivals = {{0, 10000, {"eth0 rx-0 (IRQ 45)"}, true},
                       {1, 10000, {"eth0 rx-1 (IRQ 46)", "loopback", "veth1"}, true}};
    report.facts = facts_of(report.figures, report.seen.counts, all);
    report.facts.cpus = 8;
    report.facts.listeners = 2;
    return report;
}

std::string heat_text(const ReadMatrix& matrix, const Nearness& near, const Page& page) {
    Document document;
    Document::Map map{"Arrives (down), read (across)", "read on", {}};
    for (const auto level : near_levels)
        map.grids.push_back(grid_of(matrix, near, level));
    document.add(std::move(map));
    return to_text(document, page);
}

TEST(HeatMap, IsByGroupsOfEachLevel) {
    const Nearness near(large(256));
    const auto nodes = grid_of(diagonal(256), near, NearLevel::node);
    EXPECT_EQ(nodes.rows, (std::vector<std::string>{"0", "32", "64", "96", "128", "160", "192", "224"}));
    EXPECT_NEAR(*nodes.shares[3][3], 1, 1e-9);
    const auto few = grid_of({{{900, 17}, 3}}, near, NearLevel::cpu);
    EXPECT_EQ(few.rows, (std::vector<std::string>{"17", "900"})) << "CPUs without packets are left out";
    EXPECT_NEAR(*few.shares[1][0], 1, 1e-9);
    EXPECT_NEAR(*few.shares[0][0], 0, 1e-9);
}

TEST(HeatMap, FitsThePageWhateverTheMachine) {
    for (const unsigned cpus : {2U, 12U, 13U, 34U, 64U, 256U, 1024U}) {
        const Nearness near(large(cpus));
        for (const std::size_t width : {40UL, 80UL, 200UL})
            for (const bool unicode : {false, true}) {
                const auto text = heat_text(diagonal(cpus), near, Page{.width = width, .unicode = unicode});
                EXPECT_LE(widest(text), std::max<std::size_t>(width, 80)) << cpus << " CPUs\n" << text;
            }
    }
    EXPECT_EQ(heat_text({}, Nearness(large(2)), Page{}), "");
}

TEST(HeatMap, HasColourOnlyWhereItIsWanted) {
    const Nearness near(two_sockets());
    EXPECT_EQ(heat_text(diagonal(8), near, Page{.width = 80}).find('\033'), std::string::npos);
    EXPECT_NE(heat_text(diagonal(8), near, Page{.width = 80, .color = true}).find("\033[48;5;"),
              std::string::npos);
}

std::string locality_text(const LocalityReport& report, const Nearness& near, const Page& page) {
    return to_text(locality_document(report, near), page);
}

TEST(Text, IsOnePageOfEightyColumns) {
    const Nearness near(two_sockets());
    const auto text = locality_text(report(near), near, Page{.width = 80});
    EXPECT_LE(widest(text), 80U) << text;
    EXPECT_LE(std::ranges::count(text, '\n'), 45) << text;
    EXPECT_EQ(text.find('\033'), std::string::npos);
    EXPECT_NE(text.find("ngi\\x1b[31mnx"), std::string::npos) << text;
    EXPECT_NE(text.find("20,000 TCP reads by 2 processes"), std::string::npos) << text;
    EXPECT_NE(text.find("eth0 rx-1 (IRQ 46); loopback; 1 more"), std::string::npos) << text;
    EXPECT_NE(text.find("steer: accept"), std::string::npos) << text;
}

TEST(Text, ManyProcessesAreAddedUp) {
    const Nearness near(two_sockets());
    auto many = report(near);
    for (int pid = 100; pid < 5000; ++pid)
        many.figures.workers.push_back({pid, "php-fpm", 2, 0, {}, {}});
    const auto text = locality_text(many, near, Page{.width = 80});
    EXPECT_LE(std::ranges::count(text, '\n'), 45) << text;
    EXPECT_NE(text.find("4892 more"), std::string::npos) << text;
}

TEST(Text, WithoutReadsHasNoTable) {
    const Nearness near(two_sockets());
    LocalityReport empty = report(near);
    empty.seen.counts.clear();
    empty.figures = {};
    empty.arrivals.clear();
    empty.facts = {.cpus = 8};
    const auto text = locality_text(empty, near, Page{.width = 80});
    EXPECT_EQ(text.find("PROCESS"), std::string::npos) << text;
    EXPECT_NE(text.find("Only 0 reads"), std::string::npos) << text;
}

TEST(Text, SaysWhatIsMissing) {
    const Nearness near(two_sockets());
    auto partial = report(near);
    partial.seen.notes = {"A note."};
    partial.seen.lost = 1;
    partial.seen.of_unknown = 7;
    partial.seen.in_softirq = 2;
    const auto counted = locality_text(partial, near, Page{});
    EXPECT_NE(counted.find("A note."), std::string::npos);
    EXPECT_NE(counted.find("1 read found no room"), std::string::npos);
    EXPECT_NE(counted.find("7 reads by processes that ended at once"), std::string::npos);
    EXPECT_NE(counted.find("TLS in the kernel"), std::string::npos);
}

TEST(Json, HasFiguresAndAllCounts) {
    const Nearness near(two_sockets());
    auto whole = report(near);
    whole.seen.counts.push_back({.pid = 10, .arrival = {}, .reader = 3, .protocol = 17, .reads = 1});
    const auto json = locality_document(whole, near).value;
    EXPECT_EQ(json["counts"].size(), 5U);
    EXPECT_TRUE(json["counts"][4]["arrival"].is_null());
    EXPECT_EQ(json["counts"][0]["arrival"], 0);
    EXPECT_EQ(json["processes"].size(), 2U);
    EXPECT_EQ(json["advice"], "steer_accept");
    EXPECT_NEAR(json["all"]["same"]["cpu"].get<double>(), 0.25, 1e-9);
    EXPECT_EQ(json["arrivals"][0]["sources"][0], "eth0 rx-0 (IRQ 45)");
}

TEST(Picture, EscapesNamesAndDrawsEachCell) {
    const Nearness near(two_sockets());
    const auto svg = to_svg(locality_document(report(near), near));
    EXPECT_TRUE(svg.starts_with("<svg")) << svg;
    EXPECT_TRUE(svg.ends_with("</svg>\n"));
    EXPECT_EQ(svg.find("\u202e"), std::string::npos);
    std::size_t cells = 0;
    for (auto at = svg.find("<rect x="); at != std::string::npos; at = svg.find("<rect x=", at + 1))
        ++cells;
    EXPECT_EQ(cells, 9U) << "CPUs 0, 1 and 5";
    const auto many = Nearness(large(1024));
    LocalityReport wide = report(near);
    wide.figures.matrix = diagonal(1024);
    EXPECT_LT(to_svg(locality_document(wide, many)).size(), 2'000'000U);
}

} // namespace
} // namespace affinityctl
