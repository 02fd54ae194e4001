// SPDX-License-Identifier: Apache-2.0
// Tasks and interrupts that are to sit on each CPU.
#include "affinityctl/client/answers.hpp"
#include "affinityctl/client/occupancy.hpp"

#include <gtest/gtest.h>

namespace affinityctl {
namespace {

using affinityd::CpuSet;
using nlohmann::json;

affinityd::topology::Topology four_cpus() {
    affinityd::topology::Topology topology;
    topology.online = CpuSet::range(0, 3);
    for (unsigned cpu = 0; cpu < 4; ++cpu)
        topology.cpus.push_back({cpu, {}, {}, {}, {}, cpu / 2, {}, CpuSet{cpu}});
    return topology;
}

const char* const seats_status = R"({
  "policies": [{"name": "db", "affinity": "process", "cpus": "0-3"}, {"name": "web", "affinity": "full", "cpus": "0-3"},
               {"name": "gone", "affinity": "process", "cpus": "0-3", "released": true}],
  "processes": [{"policy": "db", "threads": [{"comm": "main", "present": "0-3", "wanted": "1"},
                                             {"comm": "io", "present": "0-3", "wanted": "2-3"},
                                             {"comm": "io", "present": "0-3", "wanted": "2-3"}]},
                {"policy": "gone", "threads": [{"comm": "x", "present": "0-3", "wanted": "1"}]},
                {"policy": "web", "threads": [{"comm": "n\u001bx", "present": "0", "wanted": "1"}]}],
  "queues": [{"policy": "web", "kind": "irq", "irq": 45, "label": "eth0-rx-0", "present": "0", "wanted": "1"},
             {"policy": "web", "kind": "steering", "queue": "tx-0", "wanted": "1"}]})";

std::string seats_text(const Occupancy& occupancy) {
    Document document;
    document.add(Document::Table{seat_fields, seats_json(occupancy, four_cpus())});
    return to_text(document, Page{});
}

json seats() {
    return seats_json(occupancy_of_status(json::parse(seats_status), Masks::wanted), four_cpus());
}

TEST(Seats, AreWhatIsWantedNotWhatIs) {
    const auto all = seats();
    ASSERT_EQ(all.size(), 4U);
    EXPECT_TRUE(all[0]["holds"].empty());
    EXPECT_EQ(all[1]["tasks"], 2);
    EXPECT_EQ(all[1]["interrupts"], 1);
    EXPECT_EQ(all[1]["node"], 0);
    EXPECT_EQ(all[1]["holds"].size(), 3U) << all[1];
}

TEST(Seats, ATaskOfSeveralCpusCountsForAPartOnEach) {
    const auto all = seats();
    EXPECT_EQ(all[2]["tasks"], 1) << "two threads, each half";
    EXPECT_EQ(all[3]["tasks"], 1);
    EXPECT_EQ(all[2]["holds"][0], json({{"policy", "db"}, {"what", "io, 2 threads"}, {"cpus", "2-3"}}));
}

TEST(Seats, TextNamesEachPolicyOnceAndEscapesControlBytes) {
    const auto text = seats_text(occupancy_of_status(json::parse(seats_status), Masks::wanted));
    EXPECT_NE(text.find("db: main; web: n\\x1bx, eth0-rx-0 (IRQ 45)"), std::string::npos) << text;
    EXPECT_NE(text.find("db: io, 2 threads on 2-3"), std::string::npos) << text;
    EXPECT_EQ(text.find("gone"), std::string::npos) << text;
}

TEST(Seats, HundredsOfNamesAreCut) {
    json many{{"policies", {{{"name", "db"}, {"affinity", "process"}, {"cpus", "0"}}}},
              {"processes", {{{"policy", "db"}, {"threads", json::array()}}}}};
    for (int i = 0; i < 300; ++i)
        many["processes"][0]["threads"].push_back({{"comm", "t" + std::to_string(i)}, {"wanted", "0"}});
    const auto occupancy = occupancy_of_status(many, Masks::wanted);
    const auto text = seats_text(occupancy);
    EXPECT_NE(text.find(" and 294 more"), std::string::npos) << text;
    EXPECT_LT(text.size(), 800U);
    EXPECT_EQ(seats_json(occupancy, four_cpus())[0]["tasks"], 300);
}

} // namespace
} // namespace affinityctl
