// SPDX-License-Identifier: Apache-2.0
// What `affinityctl status` shows of a daemon's answer: is it healthy, and if not, what does one type?
#include "affinityctl/views/status/findings.hpp"
#include "affinityctl/views/status/screen.hpp"
#include "affinityctl/views/status/selection.hpp"

#include <sstream>

#include <gtest/gtest.h>

namespace affinityctl {
namespace {

using nlohmann::json;
using testing::Test;

const WallTime now = *time_in("2026-11-23T12:00:00Z");

json thread(int tid, const char* state = "in place", const char* outcome = nullptr) {
    json value{{"tid", tid}, {"comm", "worker"}, {"state", state}, {"wanted", "2"}, {"present", "2"}};
    if (outcome != nullptr) value["outcome"] = outcome;
    return value;
}

json queue(int irq, const char* state = "in place", const char* note = nullptr) {
    json value{{"kind", "irq"},      {"irq", irq},      {"label", "eth0-rx-" + std::to_string(irq)},
               {"nic", "eth0"},      {"policy", "web"}, {"wanted", "2"},
               {"present", "2"},     {"state", state},  {"reason", "lane 0"},
               {"queue_number", irq}};
    if (note != nullptr) value["note"] = note;
    return value;
}

json policy(const char* name) {
    return {{"name", name},        {"affinity", "full"},    {"cpus", "0-3"},       {"active", true},
            {"released", false},   {"nics", {"eth0"}},      {"processes", 1},      {"threads", 3},
            {"threads_wanted", 2}, {"threads_in_place", 2}, {"drift_put_right", 0}};
}

json healthy() {
    json process{{"pid", 100}, {"policy", "web"}, {"nics", {"eth0"}}};
    process["threads"] = json::array({thread(100), thread(101), thread(102, "left alone")});
    return {
        {"version", "0.1.0"},
        {"pid", 7},
        {"dry_run", false},
        {"started_at", "2026-11-23T10:00:00Z"},
        {"loaded_at", "2026-11-23T11:50:00Z"},
        {"last_pass_at", "2026-11-23T11:59:48Z"},
        {"reconcile_seconds", 60},
        {"load", {{"at", "2026-11-23T11:50:00Z"}, {"ok", true}, {"refused", ""}, {"faults", json::array()}}},
        {"policies", {policy("web"), policy("other")}},
        {"processes", json::array({process})},
        {"queues", {queue(1), queue(2)}},
        {"problems", json::array()},
        {"measurement", nullptr}};
}

json problem(const char* of, const char* since = "2026-11-23T11:55:00Z") {
    return {{"policy", of},
            {"subject", "eth0"},
            {"message", "it has no queue that could be placed now (is the link down?)"},
            {"hint", "ip link set eth0 up"},
            {"since", since}};
}

std::string shown(const json& status, StatusView view = {}) {
    view.now = now;
    return status_text(json::parse(status.dump()), view);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Status, SaysFirstThatAllIsWell) {
    const auto text = shown(healthy());
    EXPECT_TRUE(text.starts_with("affinityd 0.1.0 is running, all is in place (pid 7, for 2 h)\n")) << text;
    EXPECT_TRUE(has(text, "last reload 10 min ago: no errors; 2 policies in force; last full pass 12 s ago, "
                          "the next in 48 s"));
    EXPECT_TRUE(has(text, "web     full   0-3   eth0  1      2/2      2/2     -      0"))
        << "the thread that is left alone is not missing:\n"
        << text;
    EXPECT_TRUE(has(text, "last measurement of throughput: none yet"));
    EXPECT_FALSE(has(text, "worker")) << "threads are for those who ask for them";
    EXPECT_TRUE(findings_in(healthy()).empty());
}

TEST(Status, AQueueWithItsInterruptAndItsSteeringIsOne) {
    auto status = healthy();
    status["queues"].push_back({{"kind", "steering"},
                                {"nic", "eth0"},
                                {"queue", "tx-1"},
                                {"queue_number", 1},
                                {"policy", "web"},
                                {"state", "not in place"}});
    EXPECT_TRUE(has(shown(status), "  1/2  ")) << shown(status);
    status["queues"].push_back({{"kind", "steering"},
                                {"nic", ""},
                                {"queue", "flow-entries"},
                                {"policy", "web"},
                                {"state", "in place"}});
    EXPECT_TRUE(has(shown(status), "  1/2  ")) << "the machine's table is no queue";
}

TEST(Status, TellsHowManyThreadsHaveJoinedWhereTheyMay) {
    EXPECT_FALSE(has(shown(healthy()), "joined"));
    auto status = healthy();
    auto& joined = status["policies"][0]["joined"];
    joined = {{"threads", 0}, {"slots", {{"io", 0}, {"arrivals", 0}}}};
    EXPECT_TRUE(has(shown(status), "\nnote: policy web: no thread has joined (arrivals 0, io 0)\n"))
        << shown(status);
    joined = {{"threads", 1}, {"slots", {{"io", 1}}}};
    EXPECT_TRUE(has(shown(status), "policy web: 1 thread has joined (io 1)\n")) << shown(status);
    joined = {{"threads", 1200}, {"slots", {{"io", 1200}, {"arrivals", 3}}}};
    EXPECT_TRUE(has(shown(status), "policy web: 1200 threads have joined (arrivals 3, io 1200)\n"))
        << shown(status);
}

TEST(Status, EachFaultComesWithWhatToType) {
    struct Case {
        const char* name;
        json status;
        std::vector<std::string> said;
    };
    std::vector<Case> cases;
    const auto add = [&](const char* name, std::vector<std::string> said, const auto& change) {
        auto status = healthy();
        change(status);
        cases.push_back({name, std::move(status), std::move(said)});
    };
    add("refused interrupt",
        {"policy web: queue IRQ 2 eth0-rx-2 of eth0 could not be set (writing smp_affinity failed: "
         "Input/output error)",
         "affinityctl status web --failed"},
        [](json& status) { status["queues"][1] = queue(2, "refused", "failed: Input/output error"); });
    add("fought over",
        {"policy web: 2 queues are fought over: another program keeps changing them, first IRQ 1",
         "stop what it names; then affinityctl apply"},
        [](json& status) {
            status["queues"] = {queue(1, "fought over"), queue(2, "fought over")};
        });
    add("fought over, and irqbalance leaves it alone",
        {"policy web: queue IRQ 1", "is fought over: another program (not irqbalance) keeps changing it"},
        [](json& status) {
            status["queues"] = {queue(1, "fought over")};
            status["other_writers"] = {
                {{"name", "irqbalance"}, {"where", "pid 7"}, {"note", "it runs"}, {"keeps_off", true}},
                {{"name", "tuned"}, {"where", "pid 8"}, {"note", "it runs"}, {"keeps_off", false}}};
        });
    add("broken file",
        {"  * /etc/affinityd/policies.d/web.yaml:3:5: unknown key",
         "last reload 10 min ago: 1 file with errors", "last good version stays in force (/var/lib/last)",
         "correct and save /etc/affinityd/policies.d/web.yaml: it is read at once"},
        [](json& status) {
            status["load"]["faults"] = json::array({{{"file", "/etc/affinityd/policies.d/web.yaml"},
                                                     {"line", 3},
                                                     {"column", 5},
                                                     {"policy", "web"},
                                                     {"message", "unknown key \"cpuss\""},
                                                     {"in_force", "/var/lib/last"}}});
            auto told = problem("web");
            told["subject"] = "/etc/affinityd/policies.d/web.yaml:3:5";
            status["problems"] = json::array({told});
        });
    add("a problem",
        {"  * policy web, eth0: it has no queue that could be placed now (is the link down?) "
         "(for 5 min)",
         "ip link set eth0 up"},
        [](json& status) { status["problems"] = json::array({problem("web")}); });
    add("regressed",
        {"throughput fell: the last measurement, over loopback, is 20 % below the median",
         "affinityctl measure (a usual result clears this)",
         "last measurement of throughput, 60 s ago: 9 Gbit/s; REGRESSION"},
        [](json& status) {
            status["measurement"] = {{"summary", "9 Gbit/s; REGRESSION"},
                                     {"last", {{"path", "loopback"}}},
                                     {"trend", {{"direction", "down"}, {"change", -0.2}}}};
            status["measurement"]["last"]["time"] =
                static_cast<std::uint64_t>(std::chrono::system_clock::to_time_t(now) - 60);
        });
    for (const auto& [name, status, said] : cases) {
        const auto text = shown(status);
        EXPECT_TRUE(text.starts_with("affinityd 0.1.0 is running and NEEDS ATTENTION")) << name << "\n"
                                                                                        << text;
        for (const auto& part : said)
            EXPECT_TRUE(has(text, part)) << name << ": " << part << "\n" << text;
    }
    const auto told = shown(cases[2].status);
    EXPECT_EQ(told.find("web.yaml:3:5"), told.rfind("web.yaml:3:5")) << "a file's fault is told once";
}

TEST(Status, HowLocalReadsAre) {
    auto status = healthy();
    status["policies"][0]["local"] = {{"samples", 420},
                                      {"unknown", 0},
                                      {"same", {{"cpu", 0.9}, {"core", 0.938}, {"llc", 1}, {"node", 1}}},
                                      {"chance", {{"cpu", 0.06}, {"core", 0.12}, {"llc", 1}, {"node", 1}}}};
    EXPECT_TRUE(has(shown(status), "  2/2     94 %   0")) << shown(status);
    EXPECT_TRUE(has(shown(status, {.details = true}),
                    "policy web: 94 % of its packets are read on the core where they arrive, 12 % would be "
                    "by chance (420 samples)"))
        << shown(status, {.details = true});
    status["policies"][0]["local"] = "odd";
    EXPECT_TRUE(has(shown(status, {.details = true}), "  2/2     -      0"));
}

TEST(Status, WhatThePassPutsRightNeedsNobody) {
    auto status = healthy();
    status["processes"][0]["threads"][1] = thread(101, "drifted");
    const auto text = shown(status);
    EXPECT_TRUE(text.starts_with("affinityd 0.1.0 is running and needs no attention (pid 7")) << text;
    EXPECT_TRUE(has(text,
                    "  * policy web: thread 101 (worker) was moved by somebody else; the next pass puts "
                    "it right\n    -> no action is needed; at once: affinityctl apply\n"))
        << text;
    EXPECT_FALSE(needs_attention(findings_in(status)));
    status["queues"][1] = queue(2, "refused", "failed: Read-only file system");
    EXPECT_TRUE(needs_attention(findings_in(status)));
    const auto both = shown(status);
    EXPECT_TRUE(has(both, "NEEDS ATTENTION")) << both;
    EXPECT_TRUE(has(both, "    -> systemctl cat affinityd; remove ReadOnlyPaths=")) << both;
    EXPECT_LT(both.find("could not be set"), both.find("was moved")) << "what needs somebody comes first";
}

TEST(Status, WhatHasJustBegunHasNoAge) {
    auto status = healthy();
    status["problems"] = json::array({problem("web", "2026-11-23T11:59:50Z")});
    EXPECT_FALSE(has(shown(status), "(for 10 s)")) << shown(status);
}

TEST(Status, WhenTheNextPassIsDue) {
    auto status = healthy();
    status["reconciling"] = true;
    EXPECT_TRUE(has(shown(status), "last full pass 12 s ago, one is under way")) << shown(status);
    status["reconciling"] = false;
    status["reconcile_seconds"] = 12;
    EXPECT_TRUE(has(shown(status), "last full pass 12 s ago, the next in 1 s"))
        << "it is never said to be late";
    status.erase("reconcile_seconds");
    EXPECT_TRUE(has(shown(status), "last full pass 12 s ago\n")) << "an older daemon does not tell";
}

TEST(Status, WhatCanNeverBeMovedIsANote) {
    auto status = healthy();
    status["queues"][1] = queue(2, "immovable", "immovable: Input/output error");
    const auto text = shown(status);
    EXPECT_TRUE(has(text, "all is in place")) << text;
    EXPECT_TRUE(has(text, "note: policy web: queue IRQ 2 eth0-rx-2 of eth0 cannot be moved, and stays"))
        << text;
    EXPECT_TRUE(has(text, "  1/2  ")) << text;
}

TEST(Status, NoLineIsWiderThanThePage) {
    auto status = healthy();
    for (int i = 0; i < 30; ++i) {
        status["queues"].push_back(queue(100 + i, "refused", "failed: Input/output error"));
        status["problems"].push_back(problem("web"));
    }
    status["policies"][0]["nics"] = {"enp129s0f0np0", "enp129s0f1np1", "bond0.4094", "enp1s0f0", "enp1s0f1"};
    status["policies"][1]["name"] = "a-policy-with-a-very-long-name-that-somebody-thought-was-a-good-idea";
    status["policies"][0]["cpus"] = "0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,38,40,42,44,46";
    status["processes"][0]["threads"][0]["comm"] = "\u4e2d\u6587\u4e2d\u6587\u4e2d";
    status["other_writers"] = {
        {{"name", "irqbalance"}, {"where", "pid 12"}, {"note", std::string(300, 'n')}}};
    for (const std::size_t width : {80, 120, 200})
        for (const bool details : {false, true}) {
            std::istringstream lines(
                shown(status, {.details = details, .page = {.width = width, .unicode = true}}));
            for (std::string line; std::getline(lines, line);)
                EXPECT_LE(columns_of(line), width) << line;
        }
    EXPECT_TRUE(has(shown(status), "and 23 more: affinityctl status --failed"));
}

TEST(Status, FailedListsOnlyWhatIsOutOfPlace) {
    auto status = healthy();
    status["processes"][0]["threads"][1] = thread(101, "drifted");
    status["queues"][1] = queue(2, "refused", "failed: Input/output error");
    const auto text = shown(status, {.out_of_place = true});
    EXPECT_TRUE(has(text, "101  worker"));
    EXPECT_TRUE(has(text, "IRQ 2"));
    EXPECT_FALSE(has(text, "IRQ 1 "));
    EXPECT_FALSE(has(text, "102  worker"));
}

TEST(Status, HostileNamesStayOnTheirLine) {
    auto status = healthy();
    status["processes"][0]["threads"][1] = thread(101, "drifted");
    status["processes"][0]["threads"][1]["comm"] = "a\033[2Jb\nall is in place";
    status["problems"] = json::array({problem("web")});
    status["problems"][0]["subject"] = "x\033]0;y\007";
    for (const bool failed : {false, true}) {
        const auto text = shown(status, {.out_of_place = failed});
        EXPECT_FALSE(has(text, "\033")) << text;
        EXPECT_FALSE(has(text, "\nall is")) << text;
    }
}

TEST(Selection, APolicyAnInterfaceAProcessOrAThread) {
    const auto status = json::parse(healthy().dump());
    for (const char* subject : {"web", "eth0", "100", "102"}) {
        const auto part = selected(status, subject);
        ASSERT_TRUE(part) << subject;
        EXPECT_EQ((*part)["policies"].size(), 1U) << subject;
        EXPECT_EQ((*part)["processes"].size(), 1U) << subject;
        EXPECT_EQ((*part)["queues"].size(), 2U) << subject;
    }
    const auto idle = selected(status, "other");
    ASSERT_TRUE(idle);
    EXPECT_EQ((*idle)["policies"][0]["name"], "other");
    EXPECT_TRUE((*idle)["processes"].empty());
    EXPECT_TRUE(selected(status, std::vector<int>{100}));
    EXPECT_FALSE(selected(status, std::vector<int>{99}));
    EXPECT_FALSE(selected(status, "wbe"));
    EXPECT_EQ(names_in(status), (std::vector<std::string>{"eth0", "other", "web"}));
}

TEST(Selection, OthersProblemsAreLeftOut) {
    auto status = healthy();
    status["problems"] = {problem("web"), problem("other")};
    EXPECT_EQ((*selected(status, "web"))["problems"].size(), 1U);
    EXPECT_EQ((*selected(status, "other"))["problems"].size(), 1U);
}

TEST(Status, AnAnswerOfAnotherVersionIsShownAsFarAsItGoes) {
    EXPECT_FALSE(shown(json::object()).empty());
    EXPECT_FALSE(shown(json{{"policies", 3}, {"queues", json::array({1, "x"})}, {"load", "y"}}).empty());
}

} // namespace
} // namespace affinityctl
