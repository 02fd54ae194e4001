// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/model.hpp"

#include <gtest/gtest.h>

namespace affinityd::ttcp {
namespace {

TEST(LoadPoint, SizesAreParsed) {
    const std::pair<const char*, std::size_t> table[] = {
        {"1", 1},         {"128", 128},    {"4K", 4096},       {"4k", 4096},
        {" 64K ", 65536}, {"1M", 1 << 20}, {"64M", most_bytes}};
    for (const auto& [text, bytes] : table)
        EXPECT_EQ(parse_size(text).value(), bytes) << text;
}

TEST(LoadPoint, WhatIsNoSizeIsRefusedByName) {
    for (const char* text : {"", "0", "0K", "K", "-1", "1.5K", "65M", "67108865", "1KB", "4 K", "0x10",
                             "99999999999999999999", "18014398509481985K"}) {
        const auto size = parse_size(text);
        ASSERT_FALSE(size) << text;
        EXPECT_EQ(size.error().subject, text);
    }
}

TEST(LoadPoint, ListsAreSortedAndHaveEachSizeOnce) {
    EXPECT_EQ(parse_sizes("64K,128,1K,1024").value(), (std::vector<std::size_t>{128, 1024, 65536}));
    EXPECT_EQ(parse_sizes("all").value(), (std::vector<std::size_t>{128, 1024, 4096, 16384, 65536}));
    for (const char* text : {"", ",", "1,", "1,,2", "all,1", "1;2"})
        EXPECT_FALSE(parse_sizes(text)) << text;
}

TEST(LoadPoint, ExchangesHaveARequestAndAResponse) {
    const auto points = parse_exchanges("1,128:4K,1:1,4K").value();
    EXPECT_EQ(points, (std::vector<LoadPoint>{
                          {Work::answer, 1, 1}, {Work::answer, 128, 4096}, {Work::answer, 4096, 4096}}));
    for (const char* text : {"", ":", "1:", ":1", "1:2:3", "1,x"})
        EXPECT_FALSE(parse_exchanges(text)) << text;
}

TEST(LoadPoint, Texts) {
    EXPECT_EQ(size_text(1), "1 B");
    EXPECT_EQ(size_text(1000), "1000 B");
    EXPECT_EQ(size_text(65536), "64 KiB");
    EXPECT_EQ(size_text(1536), "1536 B");
    EXPECT_EQ(size_text(1 << 20), "1 MiB");
    EXPECT_EQ(size_text({Work::answer, 1, 4096}), "1 B : 4 KiB");
    EXPECT_EQ(size_text({Work::answer, 1, 1}), "1 B");
    EXPECT_EQ(size_text({Work::receive, 128, 0}), "128 B");
}

} // namespace
} // namespace affinityd::ttcp
