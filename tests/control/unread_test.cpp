// SPDX-License-Identifier: Apache-2.0
// Callers on a message bus who do not read what they are told, or ask for more than anybody reads.
#include "bus_fixture.hpp"
#include "fake_polkit.hpp"

#include <fstream>

#include <linux/sockios.h>
#include <sys/ioctl.h>

namespace affinityd::control {
namespace {

/// The bus takes one megabyte that is not read, where a system's takes 127.
class UnreadTest : public BusTest {
  protected:
    UnreadTest() {
        messages_.configure("<limit name=\"max_incoming_bytes\">1000000</limit>"
                            "<limit name=\"max_replies_per_connection\">50000</limit>");
        auto& limits = limits_.bus;
        limits.calls_per_second = limits.calls_at_once = 1e9;
        commands_.answer = std::string(200'000, 'x');
    }
    /// Somebody asks often, and reads nothing, until the bus takes nothing more from the daemon.
    std::unique_ptr<BusCaller> block() {
        auto caller = std::make_unique<BusCaller>(messages_, event_);
        EXPECT_TRUE(answered(caller->call("GetHistory", "")));
        caller->stop_reading();
        caller->call_unheard("GetStatus", 30);
        run_for(std::chrono::milliseconds(500));
        return caller;
    }
    void run_for(std::chrono::milliseconds time) {
        const auto end = std::chrono::steady_clock::now() + time;
        while (std::chrono::steady_clock::now() < end)
            sd_event_run(event_, 10'000);
    }
    /// Bytes that the bus has not taken out of the socket.
    [[nodiscard]] int unsent() const {
        int bytes = 0;
        if (auto* bus = bus_->connection(); bus != nullptr) ::ioctl(sd_bus_get_fd(bus), SIOCOUTQ, &bytes);
        return bytes;
    }
    /// Bytes of memory that this process has.
    static std::size_t memory() {
        std::ifstream file("/proc/self/statm");
        std::size_t all = 0, resident = 0;
        file >> all >> resident;
        return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    }
};

TEST_F(UnreadTest, WhoDoesNotReadDoesNotCutTheDaemonOffFromPolkit) {
    outbox_.patience = std::chrono::minutes(10);
    start();
    FakePolkit polkit(messages_, event_);
    const auto blocker = block();
    ASSERT_GT(unsent(), 0) << "nothing leaves over this connection";
    BusCaller other(messages_, event_);
    const auto reload = other.call("Reload");
    EXPECT_TRUE(run_until([&] { return polkit.questions.size() == 1; }));
    polkit.answer(0, true);
    EXPECT_TRUE(run_until([&] { return was_asked("reload"); }));
}

TEST_F(UnreadTest, AConnectionThatTheBusTakesNothingFromIsReplaced) {
    outbox_.patience = std::chrono::milliseconds(500);
    start();
    const auto blocker = block();
    ASSERT_TRUE(run_until([&] { return noted("the system bus takes no more answers"); }));
    ASSERT_TRUE(run_until([&] {
        return std::ranges::count(notes_, "on the system bus as org.affinityd") == 2;
    })) << "it has its name again";
    commands_.answer = "{}";
    BusCaller other(messages_, event_);
    const auto reply = other.call("GetHistory", "");
    ASSERT_TRUE(answered(reply));
    EXPECT_EQ(reply->text, "{}");
    EXPECT_EQ(notes_.size(), 3U) << notes_.back();
}

TEST_F(UnreadTest, AConnectionWhoseMessagesAreTakenIsKept) {
    outbox_.patience = std::chrono::milliseconds(100);
    start();
    BusCaller caller(messages_, event_);
    for (int i = 0; i < 40; ++i) {
        const auto reply = caller.call("GetStatus");
        ASSERT_TRUE(answered(reply));
        EXPECT_EQ(reply->text.size(), commands_.answer.size());
        run_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(notes_.size(), 1U);
}

TEST_F(UnreadTest, WhatIsLeftUnreadTakesABoundedPartOfMemory) {
    outbox_.patience = std::chrono::minutes(10);
    commands_.answer = std::string(1U << 20, 'x');
    outbox_.bytes = 4 << 20;
    start();
    const auto blocker = block();
    const auto before = memory();
    for (int i = 0; i < 40; ++i) {
        blocker->call_unheard("GetStatus", 10);
        run_for(std::chrono::milliseconds(50));
    }
    // The sanitizers keep what was freed for a while.
    EXPECT_LT(memory(), before + (128U << 20)) << "four hundred megabytes were asked for";
}

} // namespace
} // namespace affinityd::control
