// SPDX-License-Identifier: Apache-2.0
// Metrics of a status that has all that there may be, and of hostile ones. metrics.prom is the whole text.
#include "affinityctl/client/metrics.hpp"

#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace affinityctl {
namespace {

using nlohmann::json;

std::string file(const char* name) {
    const char* folder = std::getenv("METRICS_FOLDER");
    std::ifstream in(std::string(folder == nullptr ? "." : folder) + "/" + name);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

TEST(Metrics, AllFiguresOfAStatus) {
    const auto metrics = metrics_of(json::parse(file("metrics_status.json")));
    EXPECT_EQ(metrics_text(metrics, MetricsFormat::prometheus), file("metrics.prom"));
}

TEST(Metrics, CountersHaveTheirNameWithoutTotalInOpenMetrics) {
    const auto text = metrics_text(metrics_of(json{{"events_lost", 3}}), MetricsFormat::open_metrics);
    EXPECT_NE(text.find("# TYPE affinityd_events_lost counter\n"), std::string::npos) << text;
    EXPECT_NE(text.find("\naffinityd_events_lost_total 3\n"), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with("\n# EOF\n")) << text;
}

TEST(Metrics, WithoutADaemonThereIsNothingElse) {
    EXPECT_EQ(metrics_text(metrics_of(json()), MetricsFormat::prometheus),
              "# TYPE affinityd_up gauge\n# HELP affinityd_up the daemon answers\naffinityd_up 0\n");
}

TEST(Metrics, UnexpectedStatusIsIgnored) {
    for (const char* text :
         {"[]", "3", "{}",
          R"({"policies": 3, "queues": {}, "processes": [3, null], "costs": [[]], "load": 1})",
          R"({"policies": [3, null, {}, {"name": 3}], "measurement": {"last": [], "trend": 3},
              "event_to_pinned": {"seconds": "x", "buckets": [3, {"count": -1}]}})"})
        EXPECT_FALSE(metrics_text(metrics_of(json::parse(text)), MetricsFormat::open_metrics).empty())
            << text;
}

TEST(Metrics, NamesAreOneLineOfBoundedLength) {
    const std::string long_name(500, 'x');
    json status{{"policies", json::array()}};
    for (const auto& name : {std::string("a\"b\\c\nd\x1b[2J"), long_name + "1", long_name + "2",
                             std::string(63, 'y') + "\u00e9"})
        status["policies"].push_back({{"name", name}, {"threads_wanted", 1}});
    const auto text = metrics_text(metrics_of(status), MetricsFormat::prometheus);
    EXPECT_NE(text.find(R"(affinityd_policy_threads_wanted{policy="a\"b\\c\\nd\\x1b[2J"} 1)"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("{policy=\"" + std::string(64, 'x') + "\"}"), std::string::npos);
    EXPECT_NE(text.find("{policy=\"" + std::string(63, 'y') + "\"}"), std::string::npos)
        << "no half of a character";
    EXPECT_NE(text.find("\naffinityd_left_out 1\n"), std::string::npos) << "two names are cut to the same";
}

TEST(Metrics, PoliciesAndInterfacesAreBounded) {
    json status{{"policies", json::array()}, {"queues", json::array()}};
    for (int i = 0; i < 1000; ++i) {
        status["policies"].push_back({{"name", fmt::format("p{}", i)}, {"threads_wanted", 1}});
        status["queues"].push_back({{"nic", fmt::format("n{:03}", i)},
                                    {"policy", "p1"},
                                    {"kind", "irq"},
                                    {"irq", i},
                                    {"state", "in place"}});
    }
    std::map<std::string, std::size_t> series;
    for (const auto& metric : metrics_of(status))
        for (const auto& sample : metric["samples"])
            for (const auto& [key, value] : sample["labels"].items())
                if (key == "policy" || key == "nic") ++series[key + " " + value.get<std::string>()];
    EXPECT_EQ(series.size(), 128 + 64);
    for (const auto& [label, number] : series)
        EXPECT_LE(number, 20) << label;
}

} // namespace
} // namespace affinityctl
