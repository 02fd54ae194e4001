// SPDX-License-Identifier: Apache-2.0
// What is printed and drawn of an experiment with the affinity models.
#include "affinityctl/views/models/panel.hpp"
#include "affinityctl/views/models/picture.hpp"
#include "affinityctl/views/models/text.hpp"

#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

namespace affinityctl {
namespace {

using namespace affinityd::ttcp;
using affinityd::Model;

ModelResult rounds_at(Model model, double rate, const LoadPoint& point) {
    ModelResult result{model, {}};
    for (int i = 0; i < 6; ++i) {
        ModelSample sample;
        sample.bits_per_second = rate * (1 + 0.01 * i);
        sample.bytes = 1'000'000;
        sample.wall_seconds = 2;
        sample.cpu_seconds = {0.3, 0.1, {}};
        sample.cycles_per_bit = CostParts{0.75, 0.25, {}};
        sample.processes = {200, 3, 0};
        sample.kernel = {50, 4000, 9000, 1};
        if (point.work == Work::answer) sample.exchanges = ExchangeSample{20'000, 40e-6, 160e-6};
        sample.cpus = {{0, 1, 1, 0, 0, 5}, {1, 2, 2, 0, 0, 7}};
        result.samples.push_back(std::move(sample));
    }
    return result;
}

ModelsReport report_of(const std::vector<LoadPoint>& points) {
    ModelsReport report;
    report.outcome = affinityd::measure::Outcome::done;
    report.setup = "two veth pairs & <nothing> else";
    report.connections = 2;
    report.round_seconds = 2;
    report.seconds = 77;
    report.cycles_source = "CPU time of the processes and NAPI threads under test times 2.000 GHz";
    report.parts_note = "softirq is the NAPI threads under test";
    report.cpus = {0, 1};
    for (const auto& point : points) {
        const double rate = 1e6 * static_cast<double>(point.bytes);
        report.points.push_back(
            {point, {rounds_at(Model::none, rate, point), rounds_at(Model::full, 1.3 * rate, point)}});
    }
    return report;
}

std::string text_of(const ModelsReport& report) { return models_text(report, work_views(report), Page{}); }

std::size_t count(const std::string& text, std::string_view part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
        ++found;
    return found;
}

TEST(ModelsText, OneSizeIsOneTableOfEachKind) {
    const auto text = text_of(report_of({{Work::receive, 65536, 0}}));
    EXPECT_EQ(text.find("2 connections, receive, 6 rounds of 2 s for each model on CPUs 0-1, in 77 s\n"), 0U)
        << text;
    EXPECT_NE(text.find("\nReceive, 64 KiB at a time\nMODEL  GBIT/S"), std::string::npos) << text;
    EXPECT_NE(text.find("\nfull   87.3"), std::string::npos) << text;
    EXPECT_NE(text.find("+30.0 % ("), std::string::npos) << text;
    EXPECT_NE(text.find("0.75 (0.75 to 0.75)  0.25 (0.25 to 0.25)  -\n"), std::string::npos) << text;
    EXPECT_NE(text.find("2000 (2000 to 2000)  4500 (4500 to 4500)\n"), std::string::npos)
        << text; // IPIs, NET_RX
    EXPECT_NE(text.find("Cache misses: no hardware"), std::string::npos) << text;
    EXPECT_EQ(text.find("SIZE"), std::string::npos) << text;
    EXPECT_EQ(text.find("Other programs"), std::string::npos) << text;
    EXPECT_NE(text.find("\nfull   0    6.00"), std::string::npos) << text; // what CPU 0 did
}

TEST(ModelsText, CurveHasARowForEachSizeAndModel) {
    const auto report = report_of({{Work::receive, 128, 0},
                                   {Work::receive, 65536, 0},
                                   {Work::transmit, 128, 0},
                                   {Work::transmit, 65536, 0},
                                   {Work::answer, 1, 4096}});
    const auto text = text_of(report);
    EXPECT_EQ(text.find("2 connections, receive, transmit and answer requests, 2 sizes, 6 rounds"), 0U)
        << text;
    EXPECT_EQ(count(text, "\n128 B   none "), 8U) << text; // three tables and the bars, twice
    EXPECT_EQ(count(text, "\n        full "), 16U) << text;
    EXPECT_NE(text.find("Answer, 1 B : 4 KiB requests"), std::string::npos) << text;
    EXPECT_NE(text.find("10000 (10000 to 10000)"), std::string::npos) << text; // requests a second
    EXPECT_NE(text.find("40.0 (40.0 to 40.0)"), std::string::npos) << text;
    EXPECT_NE(text.find("p50 40.0 us, p99 160.0 us"), std::string::npos) << text;
    EXPECT_NE(text.find("over all rounds (receive, 64 KiB)"), std::string::npos) << text;
}

TEST(ModelsText, BusyMachineAndMissingCountersAreSaid) {
    auto report = report_of({{Work::receive, 65536, 0}});
    report.busy_before = 0.42;
    for (auto& model : report.points[0].models)
        for (auto& sample : model.samples) {
            sample.hardware.cache_misses = 8000;
            sample.kernel.ipis.reset();
        }
    const auto text = text_of(report);
    EXPECT_NE(text.find("Other programs used 42 %"), std::string::npos) << text;
    EXPECT_EQ(text.find("no hardware"), std::string::npos) << text;
    EXPECT_NE(text.find("0.00100 (0.00100 to 0.00100)"), std::string::npos) << text;
    EXPECT_NE(text.find("  -       4500 ("), std::string::npos) << text;
}

TEST(ModelsText, RunThatWasStoppedAtOnceIsPrintedToo) {
    ModelsReport report;
    report.reason = "stopped by a signal";
    report.points = {{{Work::answer, 1, 1}, {{Model::none, {}}, {Model::full, {}}}}};
    const std::string ending =
        "not finished: failed: stopped by a signal, before the first round was measured; nothing is kept";
    EXPECT_EQ(text_of(report), ending + ".\n");
    const auto svg = models_svg(report, work_views(report));
    EXPECT_NE(svg.find(ending), std::string::npos) << svg;
    EXPECT_EQ(svg.find("Cost by"), std::string::npos) << svg;
    EXPECT_NE(svg.find("</svg>"), std::string::npos);
    report.points.clear();
    EXPECT_EQ(text_of(report), ending + ".\n");
    EXPECT_NE(models_svg(report, work_views(report)).find("</svg>"), std::string::npos);
}

TEST(ModelsText, RunThatWasStoppedInTheMiddleHasWhatThereIs) {
    auto report = report_of({{Work::receive, 65536, 0}, {Work::receive, 128, 0}});
    report.outcome = affinityd::measure::Outcome::killed;
    report.reason = "stopped by a signal";
    for (auto& model : report.points[1].models)
        model.samples.clear();
    const auto text = text_of(report);
    EXPECT_NE(text.find("\nnot finished: killed: stopped by a signal\n"), std::string::npos) << text;
    EXPECT_NE(text.find("6 rounds"), std::string::npos) << text;
    EXPECT_NE(text.find("GHZ/GBPS"), std::string::npos) << "what was measured has cycles: " << text;
    EXPECT_EQ(text.substr(0, text.find("Meanwhile")).find(" 0.00"), std::string::npos)
        << "nobody was busy there: " << text;
}

TEST(ModelsText, FitsATerminalOf80Columns) {
    const auto report =
        report_of({{Work::receive, 128, 0}, {Work::receive, 65536, 0}, {Work::answer, 1, 4096}});
    std::istringstream text(models_text(report, work_views(report), Page{.width = 80}));
    for (std::string line; std::getline(text, line);)
        EXPECT_LE(columns_of(line), 80U) << line;
    EXPECT_EQ(text.str().find('~'), std::string::npos) << text.str();
}

TEST(ModelsText, CostIsCpuTimeWhereTheFrequencyIsUnknown) {
    auto report = report_of({{Work::receive, 65536, 0}});
    for (auto& model : report.points[0].models)
        for (auto& sample : model.samples)
            sample.cycles_per_bit.reset();
    const auto text = text_of(report);
    EXPECT_NE(text.find("CPU MS/GBIT"), std::string::npos) << text;
    EXPECT_NE(text.find("CPU time of a gigabit in its parts:\nMODEL  PROCESSES"), std::string::npos) << text;
    EXPECT_EQ(text.find("GHZ"), std::string::npos) << text;
    EXPECT_NE(models_svg(report, work_views(report)).find("CPU time of a gigabit, ms"), std::string::npos);
    report = report_of({{Work::receive, 128, 0}, {Work::receive, 65536, 0}});
    for (auto& sample : report.points[0].models[0].samples)
        sample.cycles_per_bit.reset();
    EXPECT_NE(models_svg(report, work_views(report)).find("CPU ms of a gigabit"), std::string::npos);
}

TEST(ModelsSummary, IsOneLineForTheHistory) {
    const auto report = report_of({{Work::receive, 128, 0}, {Work::receive, 65536, 0}, {Work::answer, 1, 1}});
    const auto line = summary_of(report, work_views(report));
    EXPECT_EQ(line.find("receive, 64 KiB: none "), 0U) << line;
    EXPECT_NE(line.find(" Gbit/s: +30.0 % ("), std::string::npos) << line;
    EXPECT_NE(line.find("; answer, 1 B: none 10000 (10000 to 10000) requests/s, full "), std::string::npos)
        << line;
    EXPECT_EQ(line.find('\n'), std::string::npos);
}

TEST(ModelsBars, AreOnOneScaleForAllSizes) {
    const auto report = report_of({{Work::receive, 100, 0}, {Work::receive, 200, 0}});
    const auto drawn = bars(work_views(report).front(), labels_of(report), 40);
    EXPECT_EQ(count(drawn, "\n"), 4U) << drawn;
    const auto length = [&](std::size_t line) {
        std::size_t at = 0;
        while (line-- > 0)
            at = drawn.find('\n', at) + 1;
        const auto text = drawn.substr(at, drawn.find('\n', at) - at);
        return std::ranges::count(text, '#') + std::ranges::count(text, '+');
    };
    EXPECT_EQ(length(3), 40) << drawn; // the largest
    EXPECT_NEAR(static_cast<double>(length(1)), 20, 1) << drawn;
    EXPECT_NEAR(static_cast<double>(length(2)), 40 / 1.3, 2) << drawn;
}

TEST(ModelsPicture, ShowsEachKindOfWork) {
    const auto one = report_of({{Work::receive, 65536, 0}, {Work::answer, 1, 1}});
    const auto bars_only = models_svg(one, work_views(one));
    for (const char* text : {"Throughput, Gbit/s", "Cost, GHz/Gbps", "processes", "Median latency, us",
                             "64 KiB at a time", "two veth pairs &amp; &lt;nothing&gt; else", "+30.0 %"})
        EXPECT_NE(bars_only.find(text), std::string::npos) << text;
    EXPECT_EQ(count(bars_only, "<circle"), 0U);
    const auto curve = report_of({{Work::transmit, 128, 0}, {Work::transmit, 65536, 0}});
    const auto panels = models_svg(curve, work_views(curve));
    // Two models at two sizes: throughput and cost; of gains only the second model's.
    EXPECT_EQ(count(panels, "<circle"), 10U);
    EXPECT_NE(panels.find(">64K<"), std::string::npos);
}

TEST(RoundSteps, AreFewAndHoldTheRange) {
    for (const auto& [low, high] : {std::pair{0.0, 1.0},
                                    {0.0, 9.7},
                                    {-3.0, 28.0},
                                    {0.0, 1e-6},
                                    {0.0, 0.0},
                                    {-41.0, 0.0},
                                    {0.0, 123456.0},
                                    {-0.1, 100.0}}) {
        const auto steps = round_steps(low, high);
        ASSERT_GE(steps.size(), 2U) << low << " " << high;
        EXPECT_LE(steps.size(), 8U) << low << " " << high;
        EXPECT_LE(steps.front(), low);
        EXPECT_GE(steps.back(), high);
    }
}

} // namespace
} // namespace affinityctl
