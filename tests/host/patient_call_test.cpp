// SPDX-License-Identifier: Apache-2.0
#include "host/fd.hpp"
#include "host/patient_call.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace affinityd::host {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::uint64_t nobody = 4194305; // above the greatest pid

/// Calls that wait until this ends.
class Gate {
  public:
    Gate() {
        std::array<int, 2> ends{};
        EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
        reader_ = std::make_shared<const Fd>(ends[0]);
        writer_ = Fd(ends[1]);
    }
    /// True: it has come back.
    [[nodiscard]] bool wait(int pid) const {
        return patiently<int>([reader = reader_, pid](std::atomic<int>& at) {
                   at = pid;
                   char byte = 0;
                   return static_cast<int>(::read(reader->get(), &byte, 1));
               })
            .has_value();
    }

  private:
    std::shared_ptr<const Fd> reader_;
    Fd writer_; ///< closed: all come back
};

TEST(PatientCall, ComesBackWithWhatTheCallSays) {
    const auto text = patiently<std::string>([](std::atomic<int>&) { return std::string("answer"); });
    EXPECT_EQ(text, "answer");
}

TEST(PatientCall, WhoWaitsForSomebodyElseIsLeftToItselfAndItsProcessAvoided) {
    const Gate gate;
    EXPECT_FALSE(is_avoided(Avoid::process, nobody));
    const auto begun = Clock::now();
    EXPECT_FALSE(gate.wait(static_cast<int>(nobody)));
    EXPECT_GE(Clock::now() - begun, longest_call);
    EXPECT_LT(Clock::now() - begun, std::chrono::seconds(20));
    EXPECT_TRUE(is_avoided(Avoid::process, nobody));
    EXPECT_FALSE(is_avoided(Avoid::process, nobody + 1));
    EXPECT_FALSE(is_avoided(Avoid::inode, nobody));
    EXPECT_EQ(patiently<int>([](std::atomic<int>&) { return 7; }), 7) << "another thread does the next one";
}

TEST(PatientCall, WhatIsAvoidedIsAvoidedByItsKind) {
    avoid(Avoid::cookie, 4711);
    EXPECT_TRUE(is_avoided(Avoid::cookie, 4711));
    EXPECT_FALSE(is_avoided(Avoid::inode, 4711));
    for (std::uint64_t i = 0; i < 3000; ++i)
        avoid(Avoid::inode, i);
    EXPECT_TRUE(is_avoided(Avoid::inode, 2999)) << "the eldest make room";
    EXPECT_FALSE(is_avoided(Avoid::cookie, 4711));
}

TEST(PatientCall, WhoOnlyNeedsACpuIsWaitedFor) {
    const auto count = patiently<int>([](std::atomic<int>&) {
        volatile int turns = 0;
        for (const auto end = Clock::now() + 4 * longest_call; Clock::now() < end;)
            turns = turns + 1;
        return 1;
    });
    EXPECT_EQ(count, 1);
}

TEST(PatientCall, WhatItHasIsKeptUntilItComesBack) {
    const auto shared = std::make_shared<int>(5);
    {
        const Gate gate;
        EXPECT_FALSE(patiently<int>([shared, &gate](std::atomic<int>&) {
                         return gate.wait(0) ? 1 : *shared;
                     }).has_value());
        EXPECT_GT(shared.use_count(), 1);
    }
    for (int i = 0; i < 2000 && shared.use_count() > 1; ++i)
        ::usleep(10'000);
    EXPECT_EQ(shared.use_count(), 1);
}

TEST(PatientCall, NoMoreThanSixteenAreLeftToThemselves) {
    const auto begin = [](const Gate& gate) {
        const auto begun = Clock::now();
        EXPECT_FALSE(gate.wait(0));
        return Clock::now() - begun;
    };
    {
        const Gate gate;
        for (int i = 0; i < 16; ++i)
            EXPECT_GE(begin(gate), longest_call);
        EXPECT_LT(begin(gate), longest_call) << "it is not even begun";
    }
    for (int i = 0; i < 2000; ++i) {
        if (patiently<int>([](std::atomic<int>&) { return 1; })) return;
        ::usleep(10'000);
    }
    FAIL() << "none can be begun though all have come back";
}

} // namespace
} // namespace affinityd::host
