// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/experiments/cache_view.hpp"
#include "affinityctl/views/experiments/figure_words.hpp"
#include "affinityctl/views/experiments/sharing_view.hpp"
#include "affinityctl/views/experiments/smt_view.hpp"

#include <cmath>
#include <sstream>

#include <gtest/gtest.h>

namespace affinityctl {
namespace {

namespace experiments = affinityd::experiments;
namespace measure = affinityd::measure;
using affinityd::CpuSet;
using experiments::Place;

std::size_t occurrences_in(const std::string& text, const std::string& what) {
    std::size_t count = 0;
    for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
        ++count;
    return count;
}

/// A series of samples around `mean`.
std::vector<double> around(double mean) {
    std::vector<double> samples;
    for (int i = 0; i < 8; ++i)
        samples.push_back(mean * (1 + 0.002 * (i % 3 - 1)));
    return samples;
}

const MeasuredOn here{.model = "A <CPU> \033[1m", .cpus = "0-3", .seconds = 2.5, .remarks = {"it was busy"}};

/// A text that a terminal of 80 columns shows without breaking a line, and without anything cut.
void expect_fits(const std::string& text) {
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);)
        EXPECT_LE(columns_of(line), 80U) << line;
    EXPECT_EQ(text.find('~'), std::string::npos) << text;
}

TEST(FigureWords, SayHowSureTheyAre) {
    EXPECT_EQ(ms_words(measure::Interval{0.00353, 0.00341, 0.0125}), "3.53 (3.41 to 12.5)");
    EXPECT_EQ(ms_words({}), "-");
    EXPECT_EQ(change_words({measure::Verdict::more, {0.75, 0.71, 0.79}}), "+75 % (+71 to +79)");
    EXPECT_EQ(change_words({measure::Verdict::less, {-0.05, -0.055, -0.045}}), "-5.0 % (-5.5 to -4.5)");
    EXPECT_EQ(change_words({measure::Verdict::none_shown, {0.1, -0.1, 0.3}}), "no difference shown");
    EXPECT_EQ(change_words({}), "too few samples");
    EXPECT_EQ(change_words({measure::Verdict::more, {0.0004, -0.0001, 0.01}}), "+0.0 % (+0.0 to +1.0)");
    EXPECT_TRUE(change_json({}).is_null());
    EXPECT_EQ(as_sentence("pinned pairs: less"), "Pinned pairs: less.");
    EXPECT_EQ(as_sentence(""), "");
}

TEST(TimeBars, FitThePage) {
    const std::vector<TimeBar> bars{{"a", measure::Interval{1, 0.9, 1.1}, "", 0},
                                    {"longer", measure::Interval{2, 1.8, 2.2}, "twice", 1},
                                    {"none", {}, "", 2}};
    EXPECT_EQ(time_bars(bars, Page{.width = 30}), "a       #########++\nlonger  ##################++++\n");
    EXPECT_EQ(time_bars(std::vector<TimeBar>{{"none", {}, "", 0}}, Page{}), "");
    const auto picture = time_bars_svg({.title = "T", .subtitle = "S", .notes = {"N"}}, bars);
    EXPECT_EQ(occurrences_in(picture, "<rect"), 3U) << "the page and two bars";
    EXPECT_NE(picture.find("twice"), std::string::npos);
    const auto two_lines =
        time_bars_svg({.title = "T", .subtitle = std::string(100, 'x') + " " + std::string(100, 'y')}, bars);
    EXPECT_NE(two_lines.find(">" + std::string(100, 'y') + "<"), std::string::npos)
        << "a line that is wider than the picture is broken";
}

experiments::SharingTimes sharing_times() {
    experiments::SharingTimes times;
    times.no_counters = "no hardware counters here: none";
    using experiments::Placing;
    for (const auto& [placing, ms] : {std::pair(Placing::scheduler, 10.7), std::pair(Placing::pairs, 3.53),
                                      std::pair(Placing::apart, 12.0), std::pair(Placing::one_line, 11.0)})
        times.placings.push_back(
            {{placing, {CpuSet{0}, CpuSet{1}, CpuSet{0}, CpuSet{1}}}, around(ms / 1e3), {}});
    return times;
}

TEST(SharingView, ShowsTheDocumentsTable) {
    const auto times = sharing_times();
    const auto reading = experiments::read_sharing(times);
    const auto text = sharing_text(times, reading, here, Page{.width = 120});
    EXPECT_NE(text.find("pinned pairs           3.53 (3.52 to 3.53)  -67.0 %"), std::string::npos) << text;
    EXPECT_NE(text.find("a: 0 0  b: 1 1"), std::string::npos);
    EXPECT_NE(text.find("no hardware counters here"), std::string::npos);
    EXPECT_EQ(text.find('\033'), std::string::npos) << "of the model's name";
    const auto document = sharing_json(times, reading, here);
    EXPECT_EQ(document["placings"].size(), 4U);
    EXPECT_EQ(document["placings"][1]["placing"], "pairs");
    EXPECT_TRUE(document["placings"][0]["longer_than_scheduler"].is_null());
    EXPECT_NEAR(document["placings"][1]["ms"]["mean"], 3.53, 0.01);
    const auto picture = sharing_svg(times, reading, here);
    EXPECT_EQ(occurrences_in(picture, "<rect"), 5U);
    EXPECT_NE(picture.find("no hardware counters here"), std::string::npos);
    expect_fits(sharing_text(times, reading, {}, Page{.width = 80}));
}

TEST(SmtView, ShowsTopologyThreadsAndVerdicts) {
    experiments::SmtTimes times;
    using experiments::Company;
    using experiments::Load;
    for (const auto load : experiments::loads)
        for (const auto company : experiments::companies) {
            const double ms = load == Load::sine && company == Company::siblings ? 945 : 540;
            times.companies.push_back({load,
                                       company,
                                       {0, 1},
                                       around(ms / 1e3),
                                       company == Company::alone ? std::vector<double>{} : around(ms / 1e3)});
        }
    const experiments::SmtSeats seats{.alone = 0,
                                      .cores = experiments::CpuPair{0, 2},
                                      .siblings = experiments::CpuPair{0, 1},
                                      .no_cores = {},
                                      .no_siblings = {}};
    const auto reading = read_smt(times, seats);
    const std::vector<experiments::LaunchedThread> launched{{{3, 3, 1}, {0, 0, 0}, 0}};
    const std::vector<std::pair<std::string, std::string>> rows{{"Threads per core", "2"}};
    const SmtView view{times, reading, seats, launched, rows};
    const auto text = smt_text(view, here, Page{.width = 120});
    EXPECT_NE(text.find("Threads per core  2"), std::string::npos) << text;
    EXPECT_NE(text.find("#0      3 3 1            0          0 0 0"), std::string::npos);
    EXPECT_NE(text.find("sin    smt: avoid  +14 % work done"), std::string::npos);
    EXPECT_NE(text.find("accum  smt: share"), std::string::npos);
    const auto document = smt_json(view, here);
    EXPECT_EQ(document["companies"].size(), 6U);
    EXPECT_EQ(document["loads"][1]["verdict"], "smt: avoid");
    EXPECT_TRUE(document["no_siblings"].is_null());
    EXPECT_EQ(occurrences_in(smt_svg(view, here), "<rect"), 7U);
    const auto narrow = smt_text(view, {}, Page{.width = 80});
    expect_fits(narrow);
    EXPECT_NE(narrow.find("sin    one core   0 and 1  945 (943 to 946)"), std::string::npos) << narrow;
}

experiments::CacheTimes cache_times() {
    experiments::CacheTimes times;
    times.how = {.quanta_ms = {2, 200},
                 .rounds = 8,
                 .footprints = {16U << 10U, 256U << 10U, 8U << 20U},
                 .polluter_bytes = 64U << 20U};
    for (const auto footprint : times.how.footprints)
        for (const double quantum : times.how.quanta_ms)
            for (const Place place : experiments::places)
                times.cells.push_back(
                    {footprint, quantum, place,
                     around(quantum / 1e3 *
                            (place == Place::other_llc ? 1 + 0.2 / quantum
                             : place == Place::group   ? 0.9999 // less than the axis has steps for
                                                       : 1))});
    return times;
}

TEST(CacheView, ShowsTableBarsAndVerdict) {
    const auto times = cache_times();
    const experiments::CacheSeats seats{.home = 0,
                                        .group = 1,
                                        .other_llc = 2,
                                        .other_node = 4,
                                        .sizes = {32U << 10U, 512U << 10U, 8U << 20U}};
    const auto reading = read_cache(times, seats);
    const CacheView view{times, reading, seats};
    const auto text = cache_text(view, here, Page{.width = 160});
    EXPECT_NE(text.find("Interrupted every 200 ms"), std::string::npos) << text;
    EXPECT_NE(text.find("+10.0 %"), std::string::npos);
    EXPECT_NE(text.find("Verdict: bind: llc"), std::string::npos);
    EXPECT_NE(text.find("last level 8 MiB; polluter 64 MiB; CPU 0"), std::string::npos);
    const auto document = cache_json(view, here);
    EXPECT_EQ(document["polluter_bytes"], 64U << 20U);
    EXPECT_EQ(document["cells"].size(), 36U);
    EXPECT_EQ(document["verdict"], "bind: llc");
    EXPECT_EQ(document["places"]["other_node"], 4);
    const auto picture = cache_svg(view, here);
    EXPECT_NE(picture.find("every 200 ms"), std::string::npos);
    EXPECT_EQ(picture.find("nan"), std::string::npos);
    EXPECT_EQ(picture.find("inf"), std::string::npos);
    EXPECT_NE(picture.find(">0 %<"), std::string::npos);
    EXPECT_EQ(picture.find("-0 %"), std::string::npos);
    EXPECT_EQ(picture.find("-0.0 %"), std::string::npos);
    const auto narrow = cache_text(view, {}, Page{.width = 80});
    expect_fits(narrow);
    EXPECT_EQ(narrow.find("-0.0 %"), std::string::npos) << narrow;
}

TEST(CacheView, OfTooFewRoundsDrawsNoCurves) {
    auto times = cache_times();
    for (auto& cell : times.cells)
        cell.seconds.resize(2);
    const experiments::CacheSeats seats{.home = 0,
                                        .group = {},
                                        .other_llc = {},
                                        .other_node = {},
                                        .sizes = {32U << 10U, 512U << 10U, 8U << 20U},
                                        .refused = {"only one"}};
    const auto reading = read_cache(times, seats);
    const CacheView view{times, reading, seats};
    EXPECT_NE(cache_text(view, here, Page{}).find("Only one."), std::string::npos);
    EXPECT_EQ(cache_svg(view, here).find("nan"), std::string::npos);
    EXPECT_TRUE(cache_json(view, here)["cells"][0]["ms"].is_null());
}

} // namespace
} // namespace affinityctl
