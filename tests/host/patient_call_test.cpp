// SPDX-License-Identifier: Apache-2.0
#include "host/avoided.hpp"
#include "host/fd.hpp"
#include "host/patient_call.hpp"
#include "host/wait_charges.hpp"
#include "support/forked.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/types.h>
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
    /// A value: it has come back. The call has `owned` as long as it runs.
    [[nodiscard]] std::expected<int, Unanswered> wait(int pid, const std::shared_ptr<int>& owned = nullptr,
                                                      std::uint64_t inode = 0,
                                                      std::uint64_t cookie = 0) const {
        return patiently<int>([reader = reader_, owned, pid, inode, cookie](InUse& at) {
            at.pid = pid;
            at.inode = inode;
            at.cookie = cookie;
            char byte = 0;
            return static_cast<int>(::read(reader->get(), &byte, 1));
        });
    }

  private:
    std::shared_ptr<const Fd> reader_;
    Fd writer_; ///< closed: all come back
};

TEST(PatientCall, ComesBackWithWhatTheCallSays) {
    const auto text = patiently<std::string>([](InUse&) { return std::string("answer"); });
    EXPECT_EQ(text, "answer");
}

TEST(PatientCall, WhoWaitsForSomebodyElseIsLeftToItselfAndItsProcessAvoided) {
    const Gate gate;
    EXPECT_FALSE(is_avoided({Avoid::process, nobody}));
    const auto begun = Clock::now();
    EXPECT_EQ(gate.wait(static_cast<int>(nobody)), std::unexpected(Unanswered::stuck));
    EXPECT_GE(Clock::now() - begun, longest_call);
    EXPECT_LT(Clock::now() - begun, std::chrono::seconds(20));
    EXPECT_TRUE(is_avoided({Avoid::process, nobody}));
    EXPECT_FALSE(is_avoided({Avoid::process, nobody + 1}));
    EXPECT_FALSE(is_avoided({Avoid::inode, nobody}));
    EXPECT_EQ(patiently<int>([](InUse&) { return 7; }), 7) << "another thread does the next one";
}

TEST(PatientCall, WhatItUsesIsAvoidedByItsKind) {
    const Gate gate;
    EXPECT_EQ(gate.wait(0, nullptr, 4711, 4712), std::unexpected(Unanswered::stuck));
    EXPECT_TRUE(is_avoided({Avoid::inode, 4711}));
    EXPECT_FALSE(is_avoided({Avoid::inode, 4712}));
    EXPECT_TRUE(is_avoided({Avoid::cookie, 4712}));
    EXPECT_FALSE(is_avoided({Avoid::cookie, 4711}));
    EXPECT_FALSE(is_avoided({Avoid::process, 0})) << "it said of no process that it uses it";
    EXPECT_TRUE(is_avoided(::getpid(), {Avoid::inode, 4711})) << "whoever has it open";
    EXPECT_FALSE(is_avoided(::getpid(), {Avoid::inode, 4712}));
}

TEST(PatientCall, WhatHasComeBackIsSoonTouchedAgain) {
    constexpr std::uint64_t slow = nobody + 2;
    const auto begun = Clock::now();
    {
        const Gate gate;
        EXPECT_EQ(gate.wait(static_cast<int>(slow)), std::unexpected(Unanswered::stuck));
    }
    while (is_avoided({Avoid::process, slow}) && Clock::now() - begun < std::chrono::seconds(60))
        ::usleep(50'000);
    EXPECT_FALSE(is_avoided({Avoid::process, slow})) << "not for ten minutes";
    EXPECT_GE(Clock::now() - begun, Avoidances::first_rest);
}

/// A child with this one's user, not root.
class Child {
  public:
    explicit Child(uid_t user)
        : child_([user] {
              if (::setresuid(user, user, user) == 0) ::pause();
          }) {
        for (int i = 0; i < 2000 && user_of() != user; ++i)
            ::usleep(1000);
    }
    [[nodiscard]] int pid() const { return child_.pid(); }

  private:
    [[nodiscard]] uid_t user_of() const {
        struct stat status {};
        return ::stat(("/proc/" + std::to_string(pid()) + "/task").c_str(), &status) == 0 ? status.st_uid : 0;
    }
    Forked child_;
};

TEST(PatientCall, WhoMakesOthersWaitTooLongIsAvoidedWithAllHisProcesses) { // needs root, as all tests do
    const Child one(65533), other(65533), bystander(65532);
    const auto payer = payer_of(one.pid());
    ASSERT_EQ(payer, 65533);
    charge_wait(*payer, WaitCharges::most);
    EXPECT_FALSE(is_process_avoided(one.pid()));
    charge_wait(*payer, milliseconds(100));
    EXPECT_TRUE(is_process_avoided(one.pid()));
    EXPECT_TRUE(is_avoided(one.pid(), {Avoid::inode, 4713}));
    EXPECT_TRUE(is_process_avoided(other.pid()));
    EXPECT_FALSE(is_process_avoided(bystander.pid()));
    EXPECT_FALSE(payer_of(::getpid())) << "root never is";
}

TEST(PatientCall, SlowCallsAreCharged) {
    const Child child(65531);
    for (int i = 0; i < 100 && !is_process_avoided(child.pid()); ++i)
        EXPECT_EQ(patiently<int>([pid = child.pid()](InUse& at) {
                      at.pid = pid;
                      ::usleep(60'000);
                      return 1;
                  }),
                  1)
            << "each comes back";
    EXPECT_TRUE(is_process_avoided(child.pid()));
}

TEST(PatientCall, WhatItsThreadUsesCountsForTheCaller) {
    const auto before = thread_time_with_calls();
    EXPECT_EQ(patiently<int>([](InUse&) {
                  volatile int turns = 0;
                  for (int i = 0; i < 20'000'000; ++i)
                      turns = turns + 1;
                  return 1;
              }),
              1);
    EXPECT_GT(thread_time_with_calls() - before, milliseconds(5));
}

TEST(PatientCall, WhoOnlyNeedsACpuIsWaitedFor) {
    const auto count = patiently<int>([](InUse&) {
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
        EXPECT_EQ(gate.wait(0, shared), std::unexpected(Unanswered::stuck));
        EXPECT_GT(shared.use_count(), 1);
    }
    for (int i = 0; i < 2000 && shared.use_count() > 1; ++i)
        ::usleep(10'000);
    EXPECT_EQ(shared.use_count(), 1);
}

TEST(PatientCall, ACallKnowsThatNobodyWaitsForItAnyMore) {
    const auto was_given_up = std::make_shared<std::atomic<int>>(-1);
    const auto is_open = std::make_shared<std::atomic<bool>>(false);
    const auto answer = patiently<int>([was_given_up, is_open](InUse& at) {
        const bool at_first = at.is_given_up;
        while (!*is_open)
            ::usleep(10'000);
        *was_given_up = !at_first && at.is_given_up ? 1 : 0;
        return 1;
    });
    EXPECT_EQ(answer, std::unexpected(Unanswered::stuck));
    *is_open = true;
    for (int i = 0; i < 2000 && *was_given_up < 0; ++i)
        ::usleep(10'000);
    EXPECT_EQ(*was_given_up, 1);
}

TEST(PatientCall, NoMoreThanSixtyFourAreLeftToThemselves) {
    {
        const Gate gate;
        for (int i = 0; i < 64; ++i)
            EXPECT_EQ(gate.wait(0), std::unexpected(Unanswered::stuck));
        EXPECT_EQ(gate.wait(0), std::unexpected(Unanswered::not_begun))
            << "nothing is known of what it was to be made on";
    }
    for (int i = 0; i < 2000; ++i) {
        if (patiently<int>([](InUse&) { return 1; })) return;
        ::usleep(10'000);
    }
    FAIL() << "none can be begun though all have come back";
}

} // namespace
} // namespace affinityd::host
