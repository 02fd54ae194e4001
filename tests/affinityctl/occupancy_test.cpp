// SPDX-License-Identifier: Apache-2.0
// Tenants of CPUs, from the daemon's answer into the tree, the table and the picture. Names may be any bytes.
#include "affinityctl/client/occupancy.hpp"
#include "affinityctl/machine/machine_view.hpp"
#include "affinityctl/present/svg.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace affinityctl {
namespace {

using affinityd::CpuSet;
using nlohmann::json;

/// Two packages, each a node and a cache of two cores with two threads.
MachineView machine() {
    MachineView view;
    auto& topology = view.topology;
    topology.possible = topology.present = topology.online = topology.housekeeping = CpuSet::range(0, 7);
    for (unsigned node = 0; node < 2; ++node) {
        const CpuSet cpus = CpuSet::range(node * 4, node * 4 + 3);
        topology.packages.push_back(cpus);
        topology.nodes.push_back({node, cpus, 1U << 30, {}});
        topology.caches.push_back({3, affinityd::topology::Cache::Type::unified, 1U << 20, cpus});
        for (unsigned core = 0; core < 2; ++core) {
            const CpuSet smt = CpuSet::range(node * 4 + core * 2, node * 4 + core * 2 + 1);
            topology.cores.push_back(smt);
            for (const unsigned cpu : smt)
                topology.cpus.push_back(
                    {cpu, static_cast<int>(node), {}, {}, static_cast<int>(core), node, {}, smt});
        }
    }
    return view;
}

const char* const status = R"({
  "policies": [{"name": "redis", "affinity": "process", "cpus": "0-3", "processes": 1, "threads": 3},
               {"name": "gone", "affinity": "full", "cpus": "4-7", "released": true},
               {"name": "web", "affinity": "full", "cpus": "4-7", "processes": 1, "threads": 1}],
  "processes": [{"policy": "redis", "threads": [{"comm": "redis-server", "present": "0-1"}, {"comm": "bio", "present": "0-3"},
                                               {"comm": "bio", "present": "0-3"}]},
                {"policy": "web", "threads": [{"comm": "nginx", "present": "6"}]},
                {"policy": "gone", "threads": [{"comm": "x", "present": "4"}]}],
  "queues": [{"policy": "web", "kind": "irq", "irq": 45, "label": "eth0-rx-0", "present": "6"},
             {"policy": "web", "kind": "xps", "queue": "tx-0", "present": "6"}],
  "problems": [{"policy": "web", "subject": "eth0", "message": "is down"}]})";

std::string tree_text(const MachineView& view) {
    Document document;
    add_tree(view, document);
    return to_text(document, Page{});
}

std::string table_text(const MachineView& view) {
    Document document;
    document.add(machine_table(view));
    return to_text(document, Page{});
}

std::string svg_picture(const MachineView& view) {
    Document document;
    document.title = view.name;
    document.line(view.occupancy.source);
    document.add(machine_picture(view));
    return to_svg(document);
}

/// Elements closed in order, no bare & or <, nothing that XML does not allow. Not a whole parser: enough to
/// see what escapes.
bool is_well_formed(std::string_view text) {
    std::vector<std::string_view> open;
    for (std::size_t at = 0; at < text.size();) {
        const char c = text[at];
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n') return false;
        if (c == '&') {
            const auto rest = text.substr(at);
            if (!rest.starts_with("&amp;") && !rest.starts_with("&lt;") && !rest.starts_with("&gt;") &&
                !rest.starts_with("&quot;"))
                return false;
        }
        if (c == '>') return false;
        if (c != '<') {
            ++at;
            continue;
        }
        const auto end = text.find('>', at);
        if (end == std::string_view::npos) return false;
        const auto tag = text.substr(at + 1, end - at - 1);
        if (tag.find('<') != std::string_view::npos) return false;
        const auto name = tag.substr(tag.starts_with('/'), tag.find_first_of(" /", 1) - tag.starts_with('/'));
        if (tag.starts_with('/')) {
            if (open.empty() || open.back() != name) return false;
            open.pop_back();
        } else if (!tag.ends_with('/')) {
            open.push_back(name);
        }
        at = end + 1;
    }
    return open.empty();
}

TEST(Occupancy, IsReadFromTheDaemonsStatus) {
    const auto occupancy = occupancy_of_status(json::parse(status));
    ASSERT_EQ(occupancy.tenants.size(), 2U) << "what was released holds nothing";
    const auto& redis = occupancy.tenants[0];
    EXPECT_EQ(redis.policy, "redis");
    EXPECT_EQ(redis.model, "process");
    EXPECT_EQ(redis.cpus.to_list(), "0-3");
    EXPECT_EQ(redis.summary, "1 process, 3 threads");
    ASSERT_EQ(redis.pins.size(), 2U);
    EXPECT_EQ(redis.pins[0].label, "bio, 2 threads");
    EXPECT_EQ(redis.pins[0].tasks, 2U);
    EXPECT_EQ(redis.pins[1].cpus.to_list(), "0-1");
    const auto& web = occupancy.tenants[1];
    ASSERT_EQ(web.pins.size(), 2U) << "steering is no pin";
    EXPECT_EQ(web.pins[1].label, "eth0-rx-0 (IRQ 45)");
    EXPECT_TRUE(web.pins[1].interrupt);
    EXPECT_EQ(occupancy.remarks, std::vector<std::string>{"web: eth0: is down"});
}

TEST(Occupancy, IsShownWhereItBelongs) {
    auto view = machine();
    view.occupancy = occupancy_of_status(json::parse(status));
    const auto tree = tree_text(view);
    EXPECT_NE(
        tree.find(
            "CPUs 0-3\n    > redis: bio, 2 threads\n    core 0: CPU 0, CPU 1\n      > redis: redis-server\n"),
        std::string::npos)
        << tree;
    EXPECT_NE(tree.find("CPU 6, CPU 7\n      > web: nginx on 6\n      > web: eth0-rx-0 (IRQ 45) on 6\n"),
              std::string::npos)
        << tree;
    EXPECT_NE(tree.find("web (affinity full): CPUs 4-7; 1 process, 1 thread"), std::string::npos) << tree;
    EXPECT_NE(tree.find("note: web: eth0: is down"), std::string::npos) << tree;
    const auto table = table_text(view);
    EXPECT_NE(table.find("web + 1 IRQs"), std::string::npos) << table;
    const auto picture = svg_picture(view);
    EXPECT_TRUE(is_well_formed(picture)) << picture;
    EXPECT_NE(picture.find("<title>CPU 6\nweb: nginx on 6\nweb: eth0-rx-0 (IRQ 45) on 6</title>"),
              std::string::npos)
        << picture;
    EXPECT_NE(picture.find(">redis: 2 tasks<"), std::string::npos)
        << "two threads have a whole cache to themselves";
}

TEST(Occupancy, OfAMalformedAnswerKeepsWhatIsReadable) {
    for (
        const auto* text :
        {"null", "[]", "{}", "7", R"("x")",
         R"({"policies": 7, "processes": {}, "queues": null, "problems": "x"})",
         R"({"policies": [7, null, [], {}], "processes": [7, {"threads": [7]}], "queues": [{}], "problems": [null]})",
         R"({"policies": [{"name": 7, "cpus": "x", "processes": -1, "released": "no"}], "processes": [{"policy": "", "threads": {}}]})",
         R"({"policies": [{"name": "a", "cpus": "0-4294967295"}], "processes": [{"policy": "a", "threads": [{"present": "9-1"}]}]})"}) {
        auto view = machine();
        view.occupancy = occupancy_of_status(json::parse(text));
        for (const auto& tenant : view.occupancy.tenants)
            for (const auto& pin : tenant.pins)
                EXPECT_FALSE(pin.cpus.empty()) << text;
        EXPECT_TRUE(is_well_formed(svg_picture(view))) << text;
        EXPECT_FALSE(tree_text(view).empty()) << text;
        EXPECT_FALSE(table_text(view).empty()) << text;
    }
}

TEST(Occupancy, NamesNeverBecomeMarkup) {
    const std::string hostile[] = {"</svg><script>",
                                   "\x1b[2J\x07",
                                   "a&b\"c'",
                                   std::string("nul\0l", 5),
                                   "\xff\xfe\xc0\xaf",
                                   "\xc2\x9b"
                                   "31m",
                                   "]]>",
                                   "\xed\xa0\x80",
                                   "€"};
    auto view = machine();
    for (const auto& name : hostile) {
        view.name += name;
        view.nics.push_back({});
        view.nics.back().name = view.nics.back().driver = name;
        view.nics.back().device = "devices/x";
        view.devices.push_back(
            {.address = name, .driver = name, .class_code = 0x010802, .node = 1, .local_cpus = {}});
        view.occupancy.tenants.push_back({.policy = name,
                                          .model = name,
                                          .cpus = CpuSet::range(0, 7),
                                          .exclusive = true,
                                          .pins = {{name, CpuSet{1}}, {name, CpuSet::range(0, 3), true}},
                                          .summary = name});
        view.occupancy.remarks.push_back(name);
    }
    view.occupancy.source = hostile[1];
    const auto picture = svg_picture(view);
    EXPECT_TRUE(is_well_formed(picture)) << picture;
    EXPECT_EQ(picture.find("<script"), std::string::npos);
    for (const auto& text : {tree_text(view), table_text(view)})
        for (std::size_t i = 0; i < text.size(); ++i) {
            const auto byte = static_cast<unsigned char>(text[i]);
            EXPECT_FALSE((byte < 0x20 && byte != '\n') || byte == 0x7f) << i << ": " << text;
            EXPECT_FALSE(byte == 0x9b && static_cast<unsigned char>(text[i - 1]) == 0xc2)
                << i << ": " << text;
        }
}

TEST(XmlText, HoldsWhatXmlMayHold) {
    const std::pair<std::string_view, std::string_view> cases[] = {
        {"a<b>&\"c'", "a&lt;b&gt;&amp;&quot;c'"},
        {"\x01\x1b\x7f", "\\x01\\x1b\\x7f"},
        {"€ü😀", "€ü😀"},
        {"\xff", "\\xff"},
        {"\xc3", "\\xc3"},
        {"\xc0\xaf", "\\xc0\\xaf"},
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
        {"\xef\xbf\xbf", "\\uffff"},
        {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
        {"\xc2\x9b", "\\u009b"},
        {"<\u202e&\u2066>", "&lt;\\u202e&amp;\\u2066&gt;"},
        {"\xe2\x82", "\\xe2\\x82"},
        {"", ""},
        {"a\nb", "a\nb"},
    };
    for (const auto& [text, expected] : cases)
        EXPECT_EQ(xml_text(text), expected) << text;
}

} // namespace
} // namespace affinityctl
