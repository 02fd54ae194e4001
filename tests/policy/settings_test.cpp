// SPDX-License-Identifier: Apache-2.0
#include "policy/settings.hpp"

#include <gtest/gtest.h>

namespace affinityd::policy {
namespace {

using std::chrono::seconds;

Settings read(const std::string& text) {
    Settings settings;
    const auto done = read_settings("f.yaml", text, settings);
    EXPECT_TRUE(done) << done.error().to_string();
    return settings;
}

TEST(Settings, MissingKeysKeepTheirValues) {
    for (const char* text : {"", "# nothing\n", "version: 1\n"}) {
        const auto settings = read(text);
        EXPECT_EQ(settings.reconcile_interval, seconds(60));
        EXPECT_EQ(settings.measure.interval, seconds(86400));
        EXPECT_EQ(settings.measure.duration, seconds(2));
        EXPECT_TRUE(settings.measure.idle_only);
        EXPECT_EQ(settings.measure.target, "");
    }
}

TEST(Settings, AllKeysInAllUnits) {
    const auto settings = read(
        "version: 1\nreconcile: 2m\nmeasure:\n  interval: 12h\n  duration: 7\n  target: 192.0.2.1:5001\n");
    EXPECT_EQ(settings.reconcile_interval, seconds(120));
    EXPECT_EQ(settings.measure.interval, seconds(12 * 3600));
    EXPECT_EQ(settings.measure.duration, seconds(7));
    EXPECT_EQ(settings.measure.target, "192.0.2.1:5001");
    EXPECT_EQ(read("redeal: 0\n").redeal_interval, seconds(0));
    EXPECT_EQ(read("redeal: 5m\n").redeal_interval, seconds(300));
    EXPECT_EQ(read("reconcile: 1d\n").reconcile_interval, seconds(86400));
    EXPECT_EQ(read("reconcile: 1s\n").reconcile_interval, seconds(1));
    EXPECT_EQ(read("measure: {interval: 0}\n").measure.interval, seconds(0));
    EXPECT_EQ(read("measure: {interval: 30d}\n").measure.interval, seconds(30 * 86400));
    EXPECT_EQ(read("measure: {target: \"[2001:db8::1]:5001\"}\n").measure.target, "[2001:db8::1]:5001");
}

TEST(Settings, EachFaultHasItsPlaceAndSaysWhatIsRight) {
    struct Case {
        const char* text;
        const char* place;
        const char* told;
    };
    const Case cases[] = {{"redeal: 9s\n", "f.yaml:1:9", "from 10 s to 86400 s"},
                          {"reconcile: 0\n", "f.yaml:1:12", "from 1 s to 86400 s"},
                          {"reconcile: 2d\n", "f.yaml:1:12", "from 1 s to 86400 s"},
                          {"reconcile: -5\n", "f.yaml:1:12", "from 1 s"},
                          {"reconcile: 5 minutes\n", "f.yaml:1:12", "like 30s or 5m"},
                          {"reconcile: [5]\n", "f.yaml:1:12", "like 30s or 5m"},
                          {"reconcile: 99999999999999999999\n", "f.yaml:1:12", "from 1 s"},
                          {"reconcile:\n", "f.yaml:1:1", "from 1 s"},
                          {"version: 1\nmeasure:\n  target:\n", "f.yaml:3:3", "it takes host:port"},
                          {"version: 2\n", "f.yaml:1:10", "must be the number 1"},
                          {"version: 1\nreconcil: 5\n", "f.yaml:2:1", "unknown key 'reconcil'"},
                          {"measure:\n  every: 5\n", "f.yaml:2:3", "unknown key 'every'"},
                          {"measure: 5\n", "f.yaml:1:10", "must be a map of keys and values"},
                          {"measure:\n  duration: 61\n", "f.yaml:2:13", "from 1 s to 60 s"},
                          {"measure:\n  interval: 31d\n", "f.yaml:2:13", "from 0 s"},
                          {"measure:\n  target: host\n", "f.yaml:2:11", "must be host:port"},
                          {"measure:\n  target: host:0\n", "f.yaml:2:11", "must be host:port"},
                          {"measure:\n  target: host:65536\n", "f.yaml:2:11", "must be host:port"},
                          {"measure:\n  target: :5001\n", "f.yaml:2:11", "must be host:port"},
                          {"measure:\n  target: --loopback:1\n", "f.yaml:2:11", "must be host:port"},
                          {"measure:\n  target: []\n", "f.yaml:2:11", "must be host:port"},
                          {"reconcile: 5\nreconcile: 6\n", "f.yaml:2:1", "duplicate key 'reconcile'"},
                          {"measure: {idle_only: yes}\n", "f.yaml:1:22", "write true, without quotes"},
                          {"measure: {bytes: 5T}\n", "f.yaml:1:18", "like 500M or 10G"},
                          {"measure: {busy_above: 0}\n", "f.yaml:1:23", "from 1% to 100%"},
                          {"measure: {durration: 5}\n", "f.yaml:1:11", "did you mean 'duration'?"},
                          {"- 5\n", "f.yaml:1:1", "must be a map of keys and values"},
                          {"reconcile: [\n", "f.yaml:", ""},
                          {"\t: x\n", "f.yaml:", ""}};
    for (const auto& one : cases) {
        Settings settings;
        const auto done = read_settings("f.yaml", one.text, settings);
        ASSERT_FALSE(done) << one.text;
        EXPECT_EQ(done.error().subject.rfind(one.place, 0), 0U)
            << one.text << ": " << done.error().to_string();
        EXPECT_NE(done.error().message.find(one.told), std::string::npos)
            << one.text << ": " << done.error().to_string();
    }
}

TEST(Settings, FaultyFileChangesNothing) {
    Settings settings;
    EXPECT_FALSE(read_settings("f.yaml", "reconcile: 5\nmeasure: {duration: 61}\n", settings));
    EXPECT_EQ(settings.reconcile_interval, seconds(60));
}

} // namespace
} // namespace affinityd::policy
