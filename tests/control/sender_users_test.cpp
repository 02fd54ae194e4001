// SPDX-License-Identifier: Apache-2.0
#include "control/sender_users.hpp"
#include "message_bus.hpp"

#include <vector>

#include <systemd/sd-event.h>

namespace affinityd::control {
namespace {

/// Asks on a connection to a message bus of the test's own for the user of that very connection.
class SenderUsersTest : public testing::Test {
  protected:
    SenderUsersTest() {
        messages_.start();
        EXPECT_GE(sd_event_new(&event_), 0);
        auto opened = messages_.connect();
        EXPECT_TRUE(opened);
        if (!opened) return;
        bus_ = std::move(*opened);
        EXPECT_GE(sd_bus_attach_event(bus_.get(), event_, SD_EVENT_PRIORITY_NORMAL), 0);
        const char* name = nullptr;
        EXPECT_GE(sd_bus_get_unique_name(bus_.get(), &name), 0);
        if (name != nullptr) self_ = name;
    }
    ~SenderUsersTest() override {
        users_.forget();
        bus_.reset();
        sd_event_unref(event_);
    }

    bool find(int number, const std::string& sender) {
        return users_.find(bus_.get(), sender, [this, number](std::optional<uid_t> user) {
            told_.push_back(number);
            found_ = user;
        });
    }
    void run_until_told(std::size_t count) {
        for (int turn = 0; turn < 3000 && told_.size() < count; ++turn)
            sd_event_run(event_, 10'000);
    }

    MessageBus messages_;
    sd_event* event_ = nullptr;
    Bus bus_;
    std::string self_;
    SenderUsers users_;
    std::vector<int> told_;
    std::optional<uid_t> found_;
};

TEST_F(SenderUsersTest, TheBusKnowsTheUserOfASender) {
    EXPECT_TRUE(find(1, self_));
    EXPECT_TRUE(told_.empty()) << "without waiting";
    run_until_told(1);
    EXPECT_EQ(found_, ::getuid());
    EXPECT_TRUE(find(2, self_));
    EXPECT_EQ(told_, (std::vector{1, 2})) << "known by now";
}

TEST_F(SenderUsersTest, ALaterRequestDoesNotOvertakeAnEarlierOne) {
    EXPECT_TRUE(find(1, self_));
    EXPECT_TRUE(find(2, self_));
    run_until_told(1);
    EXPECT_TRUE(find(3, self_));
    run_until_told(3);
    EXPECT_EQ(told_, (std::vector{1, 2, 3}));
}

TEST_F(SenderUsersTest, WhoHasGoneHasNoUser) {
    found_ = 1;
    EXPECT_TRUE(find(1, ":1.4711"));
    run_until_told(1);
    EXPECT_EQ(told_, std::vector{1});
    EXPECT_EQ(found_, std::nullopt);
}

TEST_F(SenderUsersTest, WhatWaitsIsBoundedAndRoomIsFoundAgain) {
    int taken = 0;
    while (taken < 1000 && find(taken, taken % 2 == 0 ? self_ : ":1.4711"))
        ++taken;
    EXPECT_EQ(taken, 256);
    run_until_told(256);
    EXPECT_EQ(told_.size(), 256U);
    EXPECT_TRUE(find(0, ":1.4711"));
}

TEST_F(SenderUsersTest, NothingIsToldOfAConnectionThatWasDropped) {
    EXPECT_TRUE(find(1, self_));
    users_.forget();
    EXPECT_TRUE(find(2, self_));
    run_until_told(1);
    EXPECT_EQ(told_, std::vector{2});
    EXPECT_FALSE(users_.find(nullptr, ":1.1", [](std::optional<uid_t>) {}));
}

} // namespace
} // namespace affinityd::control
