// SPDX-License-Identifier: Apache-2.0
#include "inventory/search_credit.hpp"

#include <gtest/gtest.h>

namespace affinityd::inventory {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SearchCredit::Time now{std::chrono::hours(1)};

TEST(SearchCredit, IsUsedUpAndComesBack) {
    SearchCredit credit;
    EXPECT_TRUE(credit.has_any(1, now));
    credit.spend(1, milliseconds(199), now);
    EXPECT_TRUE(credit.has_any(1, now));
    credit.spend(1, milliseconds(2), now);
    EXPECT_FALSE(credit.has_any(1, now));
    EXPECT_TRUE(credit.has_any(1, now + milliseconds(21)));
    credit.spend(1, milliseconds(500), now + milliseconds(21));
    EXPECT_FALSE(credit.has_any(1, now + seconds(9)));
    EXPECT_TRUE(credit.has_any(1, now + seconds(11)));
}

TEST(SearchCredit, IsEachOnesOwn) {
    SearchCredit credit;
    credit.spend(1, seconds(5), now);
    EXPECT_FALSE(credit.has_any(1, now));
    EXPECT_TRUE(credit.has_any(2, now));
}

TEST(SearchCredit, DoesNotAddUpWhereNothingIsUsed) {
    SearchCredit credit;
    credit.spend(1, milliseconds(1), now);
    credit.spend(1, milliseconds(201), now + seconds(1000));
    EXPECT_FALSE(credit.has_any(1, now + seconds(1000)));
}

TEST(SearchCredit, OfManyNobodyIsLetOff) {
    SearchCredit credit;
    for (std::uint64_t i = 0; i < 5000; ++i)
        credit.spend(i, seconds(1), now);
    for (std::uint64_t i = 0; i < 5000; ++i)
        EXPECT_FALSE(credit.has_any(i, now + seconds(1)));
}

} // namespace
} // namespace affinityd::inventory
