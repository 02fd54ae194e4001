// SPDX-License-Identifier: Apache-2.0
// Files that a caller sends over the bus: to close them may take as long as their owner likes.
#include "control/bus.hpp"
#include "message_bus.hpp"

#include <chrono>
#include <cstdlib>

namespace affinityd::control {
namespace {

class SentFilesTest : public testing::Test {
  protected:
    SentFilesTest() {
        EXPECT_GE(sd_event_new(&event_), 0);
        messages_.start();
        ::setenv("DBUS_SYSTEM_BUS_ADDRESS", ("unix:path=" + messages_.socket()).c_str(), 1);
    }
    ~SentFilesTest() override {
        ::unsetenv("DBUS_SYSTEM_BUS_ADDRESS");
        sd_event_unref(event_);
    }
    [[nodiscard]] Bus attached(std::expected<Bus, int> opened) const {
        EXPECT_TRUE(opened);
        EXPECT_GE(sd_bus_attach_event(opened->get(), event_, SD_EVENT_PRIORITY_NORMAL), 0);
        return std::move(*opened);
    }
    /// The name of the error with which a call is answered; "": it was not refused.
    std::string answer_to(sd_bus* caller, const char* name, bool has_file) {
        sd_bus_message* raw = nullptr;
        EXPECT_GE(
            sd_bus_message_new_method_call(caller, &raw, name, "/", "org.freedesktop.DBus.Peer", "Ping"), 0);
        const Message message(raw);
        if (has_file) {
            EXPECT_GE(sd_bus_message_append(raw, "h", STDERR_FILENO), 0);
        }
        is_answered_ = false;
        EXPECT_GE(sd_bus_call_async(caller, nullptr, raw, on_reply, this, 0), 0);
        const auto begun = std::chrono::steady_clock::now();
        while (!is_answered_ && std::chrono::steady_clock::now() - begun < std::chrono::minutes(1))
            sd_event_run(event_, 10'000);
        EXPECT_TRUE(is_answered_);
        return refusal_;
    }
    static int on_reply(sd_bus_message* reply, void* userdata, sd_bus_error*) {
        auto& self = *static_cast<SentFilesTest*>(userdata);
        const auto* error = sd_bus_message_get_error(reply);
        self.refusal_ = error == nullptr ? "" : error->name;
        self.is_answered_ = true;
        return 0;
    }
    sd_event* event_ = nullptr;
    MessageBus messages_;
    bool is_answered_ = false;
    std::string refusal_;
};

TEST_F(SentFilesTest, AreRefusedByTheBus) {
    const auto daemon = attached(SystemBus::open_system()), caller = attached(messages_.connect());
    const char* name = nullptr;
    ASSERT_GE(sd_bus_get_unique_name(daemon.get(), &name), 0);
    ASSERT_GT(sd_bus_can_send(caller.get(), SD_BUS_TYPE_UNIX_FD), 0);
    EXPECT_EQ(answer_to(caller.get(), name, false), "");
    EXPECT_EQ(answer_to(caller.get(), name, true), SD_BUS_ERROR_NOT_SUPPORTED);
}

} // namespace
} // namespace affinityd::control
