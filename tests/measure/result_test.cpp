// SPDX-License-Identifier: Apache-2.0
#include "measure/result.hpp"

#include <gtest/gtest.h>

namespace affinityd::measure {
namespace {

Report full_report() {
    Report report;
    report.outcome = Outcome::peer_gone;
    report.reason = "a \"quoted\" reason, ü";
    report.setup.path = "10.0.0.1:5001";
    report.setup.touches_nic_interrupts = true;
    report.setup.streams = 8;
    report.setup.buffer_bytes = 131072;
    report.seconds = 5.25;
    report.bytes = 18446744073709551615ULL;
    report.bits_per_second = 9.4e9;
    report.transmitter = EndReport{1, 2, 0.5, 0.25, 3, 4, 5, std::nullopt, 6, 7, 8};
    report.ghz_per_gbps = 0.75;
    report.cycles_source = "hardware counters";
    report.cpus = {{0, 1, 2, 3, 4, 5}, {1048575, 0, 0, 0, 0.01, 6}};
    report.lines = {{32, "virtio3-input.0", 1, 99}};
    return report;
}

TEST(ReportText, EveryFieldIsReadBack) {
    const auto report = full_report();
    const auto text = to_json(report);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    const auto parsed = parse_report(text);
    ASSERT_TRUE(parsed) << parsed.error().to_string();
    EXPECT_EQ(*parsed, report);
}

TEST(ReportText, EveryOutcomeHasItsOwnName) {
    for (int i = 0; i <= static_cast<int>(Outcome::failed); ++i)
        EXPECT_EQ(parse_outcome(to_string(static_cast<Outcome>(i))), static_cast<Outcome>(i));
    EXPECT_FALSE(parse_outcome("DONE"));
}

TEST(ReportText, LabelThatIsNotUtf8IsReplaced) {
    auto report = full_report();
    report.lines[0].label = "bad\xff\xfe";
    EXPECT_TRUE(parse_report(to_json(report)));
}

struct Case {
    const char* what;
    const char* from;
    const char* to;
    const char* message;
};

class HostileReport : public ::testing::TestWithParam<Case> {};

TEST_P(HostileReport, IsRefusedByName) {
    auto text = to_json(full_report());
    const auto at = text.find(GetParam().from);
    ASSERT_NE(at, std::string::npos) << text;
    text.replace(at, std::string_view(GetParam().from).size(), GetParam().to);
    const auto parsed = parse_report(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().to_string().find(GetParam().message), std::string::npos)
        << parsed.error().to_string();
}

INSTANTIATE_TEST_SUITE_P(
    Table, HostileReport,
    ::testing::Values(
        Case{"missing", "\"seconds\":5.25,", "", "seconds: missing"},
        Case{"unknown", "\"seconds\":5.25", "\"seconds\":5.25,\"x\":1", "x: unknown key"},
        Case{"unknown inside", "\"calls\":2", "\"calls\":2,\"y\":1", "transmitter.y: unknown key"},
        Case{"negative", "\"seconds\":5.25", "\"seconds\":-1", "seconds: expected a number"},
        Case{"huge", "\"seconds\":5.25", "\"seconds\":1e300", "seconds: expected a number"},
        Case{"text for number", "\"seconds\":5.25", "\"seconds\":\"5\"", "seconds: expected a number"},
        Case{"fraction of bytes", "\"bytes\":1,", "\"bytes\":1.5,", "bytes: expected a whole number"},
        Case{"CPU beyond all", "\"cpu\":1048575", "\"cpu\":1048576", "cpu: expected a whole number"},
        Case{"control characters", "virtio3-input.0", "a\\u001b[31m", "label: holds control characters"},
        Case{"line end", "quoted", "a\\nb", "reason: holds control characters"},
        Case{"other version", "\"version\":1", "\"version\":2", "version: not one"},
        Case{"other kind", "\"kind\":\"ttcp\"", "\"kind\":\"x\"", "kind: expected"},
        Case{"outcome", "peer_gone", "great", "outcome: not one"},
        Case{"list", "\"lines\":[", "\"lines\":7,\"q\":[", "lines: expected a list"},
        Case{"object", "\"receiver\":null", "\"receiver\":[]", "receiver: expected an object"},
        Case{"boolean", "interrupts\":true", "interrupts\":1", "touches_nic_interrupts: expected true"}));

TEST(ReportText, TextThatIsNotJsonIsRefused) {
    for (const char* text : {"", "{", "[]", "null", "7", "\"x\"", "{}", "\xff\xfe", "{\"version\":1}x"})
        EXPECT_FALSE(parse_report(text)) << text;
    EXPECT_FALSE(parse_report(std::string(100000, '[')));
    EXPECT_FALSE(parse_report(std::string(2U << 20, ' ')));
}

TEST(ReportText, EveryPrefixIsRefused) {
    const auto text = to_json(full_report());
    for (std::size_t i = 0; i < text.size(); ++i)
        EXPECT_FALSE(parse_report(std::string_view(text).substr(0, i))) << i;
}

} // namespace
} // namespace affinityd::measure
