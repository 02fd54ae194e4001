// SPDX-License-Identifier: Apache-2.0
#include "base/owned_text.hpp"

#include <gtest/gtest.h>

namespace affinityd {
namespace {

TEST(OwnedText, IsFullForThePrivilegedAndRedactedForThoseWhoOwnNothing) {
    OwnedText text("[");
    text.add(1000, "alice's", "x");
    text.add(",");
    text.add(1001, "bob's", "y");
    text.add(",");
    text.add(OwnedText::no_owner, "root's", "z");
    text.add("]");
    EXPECT_EQ(text.full(), "[alice's,bob's,root's]");
    EXPECT_EQ(text.size(), text.full().size());
    EXPECT_EQ(text.seen_by(1000), "[alice's,y,z]");
    EXPECT_EQ(text.seen_by(1001), "[x,bob's,z]");
    EXPECT_EQ(text.seen_by(0), "[x,y,z]") << "privilege is not for this class to know";
    EXPECT_EQ(text.seen_by(OwnedText::no_owner), "[x,y,z]") << "an unknown user owns nothing";
}

TEST(OwnedText, PartsOfOneOwnerInARowAreHisAndPartsOfOthersBetweenThemAreNot) {
    OwnedText text;
    text.add(1000, "a", "1");
    text.add(1000, "b", "2");
    text.add(1001, "c", "3");
    text.add(1000, "d", "4");
    text.add(OwnedText::no_owner, "e", "5");
    text.add(OwnedText::no_owner, "f", "6");
    EXPECT_EQ(text.full(), "abcdef");
    EXPECT_EQ(text.seen_by(1000), "ab3d56");
    EXPECT_EQ(text.seen_by(1001), "12c456");
    EXPECT_EQ(text.seen_by(OwnedText::no_owner), "123456");
    EXPECT_EQ(text.size(), 6U);
}

TEST(OwnedText, IsEmptyAtFirst) {
    EXPECT_EQ(OwnedText().full(), "");
    EXPECT_EQ(OwnedText().seen_by(1), "");
    EXPECT_EQ(OwnedText().size(), 0U);
}

} // namespace
} // namespace affinityd
