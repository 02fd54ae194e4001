// SPDX-License-Identifier: Apache-2.0
#include "../support/tree.hpp"
#include "host/subordinate_ids.hpp"

#include <gtest/gtest.h>

namespace affinityd::host {
namespace {

TEST(SubordinateIds, OfOneRangeAreOnePerson) {
    const test::Tree tree;
    tree.file("subuid",
              "# a comment\nanna:100000:65536\n1001:165536:65536\n\nx:7\nx:a:b\nx:-1:5\nx:0:4294967295\n"
              "last:4294900000:67295");
    SubordinateIds ids(tree.path("subuid"));
    EXPECT_EQ(ids.person(100000), 100000U);
    EXPECT_EQ(ids.person(165535), 100000U);
    EXPECT_EQ(ids.person(165536), 165536U);
    EXPECT_EQ(ids.person(231072), 231072U) << "behind all ranges of others";
    EXPECT_EQ(ids.person(4294967294U), 4294900000U);
    for (const uid_t own : {0U, 1U, 1001U, 65534U, 99999U})
        EXPECT_EQ(ids.person(own), own);
}

TEST(SubordinateIds, WithoutAFileEachIsHimself) {
    const test::Tree tree;
    SubordinateIds ids(tree.path("no/such/file"));
    EXPECT_EQ(ids.person(100000), 100000U);
}

} // namespace
} // namespace affinityd::host
