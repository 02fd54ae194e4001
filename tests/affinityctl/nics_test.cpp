// SPDX-License-Identifier: Apache-2.0
// What the daemon's status adds to the interfaces.
#include "affinityctl/client/nic_status.hpp"

#include <gtest/gtest.h>

namespace affinityctl {
namespace {

using nlohmann::json;

json nics() {
    return json::parse(R"([
      {"name": "eth1", "queues": [{"direction": "rx", "index": 0}], "vectors": [{"irq": 30, "label": "eth1-TxRx-0"}]},
      {"name": "eth10", "queues": [], "vectors": [{"irq": 40, "label": "eth10-TxRx-0"}, {"irq": 41, "label": "eth10-TxRx-1"}, {"irq": 42, "label": null}]},
      {"name": "veth0", "queues": [{"direction": "rx", "index": 0}, {"direction": "tx", "index": 0}], "vectors": []}])");
}

json nics_status() {
    return json::parse(R"json({
      "queues": [
        {"kind": "irq", "nic": "eth10", "irq": 40, "label": "eth10-TxRx-0", "policy": "web", "wanted": "2", "present": "2", "original": "0-3", "reason": "full", "shared_with": "ehci_hcd:usb1"},
        {"kind": "irq", "nic": "eth10", "irq": 41, "label": "eth10-TxRx-1", "policy": "web", "wanted": "3", "present": "0-3", "reason": "full"},
        {"kind": "steering", "nic": "veth0", "queue": "tx-0", "policy": "web", "wanted": "2", "present": "2", "reason": "XPS", "note": "fought over"},
        {"kind": "steering", "nic": "veth0", "queue": "rx-0-flows", "policy": "web", "wanted": "32768", "reason": "RFS"},
        {"kind": "irq", "nic": "gone0", "irq": 50, "label": "gone0", "policy": "web", "wanted": "2"}],
      "refused": {"IRQ 41 (eth10-TxRx-1)": "immovable (Input/output error)"},
      "processes": [
        {"pid": 10, "comm": "web", "policy": "web", "nics": ["eth10"], "threads": [
          {"tid": 10, "comm": "web", "wanted": "2-3"}, {"tid": 11, "comm": "io", "wanted": "3"}, {"tid": 12, "comm": "log", "wanted": "0"}]},
        {"pid": 20, "comm": "other", "policy": "web", "nics": ["eth1"], "threads": [{"tid": 20, "comm": "other", "wanted": "2"}]},
        {"pid": 30, "comm": "any", "policy": "web", "nics": [], "threads": [{"tid": 30, "comm": "any", "wanted": "2"}]},
        {"pid": 40, "comm": "alien", "policy": "mail", "nics": ["eth10"], "threads": [{"tid": 40, "comm": "alien", "wanted": "2"}]}]})json");
}

TEST(NicStatus, EachVectorGetsItsWantedCpusTasksAndLastRefusal) {
    auto list = nics();
    merge_status(list, nics_status());
    const auto& first = list[1]["vectors"][0];
    EXPECT_EQ(first["wanted"], "2");
    EXPECT_EQ(first["policy"], "web");
    EXPECT_EQ(first["original"], "0-3");
    EXPECT_EQ(first["shared_with"], "ehci_hcd:usb1");
    EXPECT_EQ(first["tasks"],
              json::parse(R"([{"pid":10,"tid":10,"comm":"web"},{"pid":30,"tid":30,"comm":"any"}])"));
    EXPECT_FALSE(first.contains("error"));
    const auto& second = list[1]["vectors"][1];
    EXPECT_EQ(second["error"], "immovable (Input/output error)");
    EXPECT_EQ(tasks_text(second["tasks"]), "web 10, io 11");
    EXPECT_FALSE(list[1]["vectors"][2].contains("wanted"));
    EXPECT_EQ(list[0], nics()[0]) << "eth1 is not eth10";
    EXPECT_EQ(list[2]["queues"][1]["error"], "fought over");
    EXPECT_FALSE(list[2]["queues"][0].contains("wanted")) << "the number of flows is no place";
}

TEST(NicStatus, UnexpectedStatusIsIgnored) {
    for (
        const char* text :
        {"null", "[]", "{}", "3", R"({"queues": 3})",
         R"({"queues": [3, null, {}], "processes": {}, "refused": []})",
         R"({"queues": [{"kind": "irq", "nic": "eth1", "irq": 30, "label": "eth1-TxRx-0"}], "processes": [3, {"threads": [4]}]})"}) {
        auto list = nics();
        merge_status(list, json::parse(text));
        EXPECT_EQ(list.size(), 3U) << text;
    }
    auto list = nics();
    merge_status(list, json::parse("{", nullptr, false));
    EXPECT_EQ(list, nics());
}

TEST(NicStatus, ManyTasksAreCounted) {
    auto tasks = json::array();
    EXPECT_EQ(tasks_text(tasks), "-");
    for (int tid = 1; tid <= 5; ++tid)
        tasks.push_back({{"pid", 1}, {"tid", tid}, {"comm", "w"}});
    EXPECT_EQ(tasks_text(tasks), "w 1, w 2, w 3 and 2 more");
}

} // namespace
} // namespace affinityctl
