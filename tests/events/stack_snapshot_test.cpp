// SPDX-License-Identifier: Apache-2.0
#include "events/stack_snapshot.hpp"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

namespace affinityd::events {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::string printed(const StackSnapshot& snapshot) {
    testing::internal::CaptureStderr();
    snapshot.print();
    return testing::internal::GetCapturedStderr();
}

void work_for(milliseconds time) {
    for (const auto end = steady_clock::now() + time; steady_clock::now() < end;) {
    }
}

TEST(StackSnapshot, WhatTakesLongerThanItShouldHasAStack) {
    StackSnapshot snapshot;
    snapshot.prepare(milliseconds(5));
    snapshot.begin();
    work_for(milliseconds(50));
    snapshot.end();
    const auto stack = printed(snapshot);
    EXPECT_NE(stack.find("[0x"), std::string::npos) << stack;
}

TEST(StackSnapshot, WhatIsShortHasNone) {
    StackSnapshot snapshot;
    snapshot.prepare(std::chrono::seconds(60));
    snapshot.begin();
    snapshot.end();
    work_for(milliseconds(5));
    EXPECT_EQ(printed(snapshot), "");
}

TEST(StackSnapshot, TheNextTimeForgetsTheOneBefore) {
    StackSnapshot snapshot;
    snapshot.prepare(milliseconds(20));
    snapshot.begin();
    work_for(milliseconds(100));
    snapshot.end();
    ASSERT_NE(printed(snapshot), "");
    snapshot.begin();
    snapshot.end();
    EXPECT_EQ(printed(snapshot), "");
}

} // namespace
} // namespace affinityd::events
