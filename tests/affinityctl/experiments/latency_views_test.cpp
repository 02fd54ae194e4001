// SPDX-License-Identifier: Apache-2.0
#include "accounting/measurements.hpp"
#include "affinityctl/views/experiments/latency_view.hpp"

#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

namespace affinityctl {
namespace {

namespace experiments = affinityd::experiments;
namespace topology = affinityd::topology;
using affinityd::CpuSet;

/// Two groups, the even CPUs and the odd ones, which are 8 ns apart; 90 ns between them.
topology::Latencies even_and_odd(unsigned cpus) {
    topology::Latencies latencies(CpuSet::range(0, cpus - 1));
    for (unsigned b = 0; b < cpus; ++b)
        for (unsigned a = 0; a < b; ++a)
            latencies.set(a, b, a % 2 == b % 2 ? 8 : 90);
    return latencies;
}

std::size_t widest_row(const std::string& text) {
    std::istringstream lines(text);
    std::size_t widest = 0;
    for (std::string line; std::getline(lines, line);)
        widest = std::max(widest, columns_of(line));
    return widest;
}

TEST(LatencyMap, PutsWhatIsNearSideBySide) {
    const auto latencies = even_and_odd(6);
    const auto map = latency_map(latencies, topology::latency_levels(latencies), 100);
    EXPECT_EQ(map.names, (std::vector<unsigned>{0, 2, 4, 1, 3, 5}));
    EXPECT_EQ(map.ns[0][1], 8);
    EXPECT_EQ(map.ns[0][3], 90);
    EXPECT_FALSE(map.ns[2][2]);
    EXPECT_EQ(map.least, 8);
    EXPECT_EQ(map.most, 90);
    EXPECT_EQ(shade_of_ns(map, 8), 1);
    EXPECT_GT(shade_of_ns(map, 20), shade_of_ns(map, 40));
    EXPECT_GT(shade_of_ns(map, 90), 0) << "the farthest is not nothing";
    EXPECT_EQ(shade_of_ns(map, {}), 0);
}

TEST(LatencyMap, IsFoldedUntilItFits) {
    const auto latencies = even_and_odd(64);
    const auto levels = topology::latency_levels(latencies);
    const auto groups = latency_map(latencies, levels, 20);
    EXPECT_EQ(groups.names, (std::vector<unsigned>{0, 1}));
    EXPECT_EQ(groups.ns[0][0], 8) << "within a group";
    EXPECT_EQ(groups.ns[0][1], 90);
    EXPECT_NE(groups.scale.find("groups of level 1"), std::string::npos);
    const auto some = latency_map(latencies, {}, 20);
    EXPECT_EQ(some.names.size(), 16U);
    EXPECT_EQ(some.scale, "1 of 4 CPUs is shown");
}

TEST(LatencyMap, OfAUniformMachineHasOneShade) {
    topology::Latencies latencies(CpuSet::range(0, 3));
    for (unsigned b = 0; b < 4; ++b)
        for (unsigned a = 0; a < b; ++a)
            latencies.set(a, b, 40 + a);
    const auto map = latency_map(latencies, {}, 10);
    EXPECT_GT(shade_of_ns(map, 42), 0.9);
}

TEST(LatencyMap, FitsItsPage) {
    for (const unsigned cpus : {2U, 5U, 13U, 14U, 40U, 256U}) {
        const auto latencies = even_and_odd(cpus);
        for (const std::size_t width : {20U, 80U, 200U})
            for (const bool unicode : {false, true}) {
                const auto text = latency_map_text(latencies, topology::latency_levels(latencies),
                                                   Page{.width = width, .color = false, .unicode = unicode});
                EXPECT_FALSE(text.empty());
                const auto rows = text.substr(text.find('\n')); // the heading says what it says
                EXPECT_LE(widest_row(rows), width) << cpus << " CPUs, width " << width << "\n" << text;
            }
    }
    EXPECT_EQ(latency_map_text(topology::Latencies(), {}, Page{}), "");
}

LatencyView view_of(const topology::Latencies& latencies, const experiments::LatencyReading& reading) {
    return {.latencies = latencies, .reading = reading, .source = "\x1b[31m<evil> & \"co\""};
}

TEST(LatencyViews, EscapeForeignTexts) {
    const auto latencies = even_and_odd(4);
    const auto reading = experiments::read_latencies(latencies, nullptr);
    const auto view = view_of(latencies, reading);
    EXPECT_EQ(latency_text(view, Page{}).find('\x1b'), std::string::npos);
    const auto svg = latency_svg(view);
    EXPECT_EQ(svg.find('\x1b'), std::string::npos);
    EXPECT_NE(svg.find("&lt;evil&gt;"), std::string::npos);
}

TEST(LatencyViews, DrawALargeMatrixInAReasonableFile) {
    const auto latencies = even_and_odd(256);
    const auto reading = experiments::read_latencies(latencies, nullptr);
    const auto svg = latency_svg(view_of(latencies, reading));
    EXPECT_LT(svg.size(), 2U << 20);
    EXPECT_NE(svg.find(">0,2,4"), std::string::npos) << "groups are named";
}

TEST(LatencyViews, OfNothingMeasuredAreNoCrash) {
    const topology::Latencies latencies(CpuSet::range(0, 3));
    const auto reading = experiments::read_latencies(latencies, nullptr);
    const auto view = view_of(latencies, reading);
    EXPECT_FALSE(latency_text(view, Page{}).empty());
    EXPECT_TRUE(latency_svg(view).starts_with("<svg"));
    EXPECT_EQ(latency_json(view)["levels"], nlohmann::json::array());
}

TEST(LatencyViews, HaveLevelsAsPromised) {
    const auto latencies = even_and_odd(6);
    const auto reading = experiments::read_latencies(latencies, nullptr);
    EXPECT_EQ(latency_json(view_of(latencies, reading))["levels"],
              nlohmann::json::parse(R"([{"ns": 8.0, "groups": ["0,2,4", "1,3,5"]}])"));
}

/// With intervals, as a machine of that many CPUs gives them.
experiments::LatencyMatrix measured_matrix(unsigned cpus) {
    experiments::LatencyMatrix matrix{topology::Latencies(CpuSet::range(0, cpus - 1)), {}, {}};
    for (unsigned b = 0; b < cpus; ++b)
        for (unsigned a = 0; a < b; ++a) {
            const double ns = 100.1 + (a + b) % 7;
            matrix.latencies.set(a, b, ns);
            matrix.pairs.push_back({{a, b}, ns, ns - 1, ns + 1, ns});
        }
    return matrix;
}

TEST(LatencyViews, OfTheLargestMachineCanBeKept) {
    experiments::LatencyReading reading;
    const auto largest = measured_matrix(topology::Latencies::most_cpus);
    const LatencyView view{.latencies = largest.latencies, .reading = reading, .matrix = &largest};
    const auto most = affinityd::accounting::most_experiment_detail;
    const auto kept = latency_detail(view, most);
    EXPECT_LE(kept.size(), most) << "intervals and all would be " << latency_json(view).dump().size();
    const auto again = topology::latencies_from_json(kept);
    ASSERT_TRUE(again) << again.error().to_string();
    EXPECT_EQ(again->measured(), largest.latencies.measured()) << "all by which tasks are placed";
}

TEST(LatencyViews, OfAUsualMachineAreKeptWithTheirIntervals) {
    experiments::LatencyReading reading;
    const auto matrix = measured_matrix(256);
    const LatencyView view{.latencies = matrix.latencies, .reading = reading, .matrix = &matrix};
    const auto kept = latency_detail(view, affinityd::accounting::most_experiment_detail);
    EXPECT_EQ(nlohmann::json::parse(kept)["low"][1][0], 100.1);
}

} // namespace
} // namespace affinityctl
