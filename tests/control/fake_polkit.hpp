// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "message_bus.hpp"

#include <string>
#include <vector>

namespace affinityd::control {

/// Stands in for polkit on a test's message bus: notes questions and answers when the test says so.
class FakePolkit {
  public:
    FakePolkit(const MessageBus& bus, sd_event* event) {
        auto opened = bus.connect();
        EXPECT_TRUE(opened);
        if (opened) bus_ = std::move(*opened);
        static const sd_bus_vtable methods[] = {SD_BUS_VTABLE_START(0),
                                                SD_BUS_METHOD("CheckAuthorization", "(sa{sv})sa{ss}us",
                                                              "(bba{ss})", on_check,
                                                              SD_BUS_VTABLE_UNPRIVILEGED),
                                                SD_BUS_VTABLE_END};
        EXPECT_GE(sd_bus_add_object_vtable(bus_.get(), nullptr, "/org/freedesktop/PolicyKit1/Authority",
                                           "org.freedesktop.PolicyKit1.Authority", methods, this),
                  0);
        EXPECT_GE(sd_bus_request_name(bus_.get(), "org.freedesktop.PolicyKit1", 0), 0);
        EXPECT_GE(sd_bus_attach_event(bus_.get(), event, SD_EVENT_PRIORITY_NORMAL), 0);
    }

    struct Question {
        std::string caller, action;
        bool may_prompt = false;
        Message call;
    };
    void answer(std::size_t index, bool authorized, bool challenge = false) {
        auto& question = questions.at(index);
        EXPECT_GE(sd_bus_reply_method_return(question.call.get(), "(bba{ss})", authorized ? 1 : 0,
                                             challenge ? 1 : 0, 0),
                  0);
        question.call.reset();
    }

    std::vector<Question> questions;

  private:
    static int on_check(sd_bus_message* call, void* userdata, sd_bus_error*) {
        const char *kind = "", *key = "", *name = "", *action = "", *cancellation = "";
        std::uint32_t flags = 0;
        sd_bus_message_enter_container(call, 'r', "sa{sv}");
        sd_bus_message_read(call, "s", &kind);
        sd_bus_message_enter_container(call, 'a', "{sv}");
        sd_bus_message_enter_container(call, 'e', "sv");
        sd_bus_message_read(call, "sv", &key, "s", &name);
        for (int level = 0; level < 3; ++level)
            sd_bus_message_exit_container(call);
        sd_bus_message_read(call, "s", &action);
        sd_bus_message_skip(call, "a{ss}");
        sd_bus_message_read(call, "us", &flags, &cancellation);
        EXPECT_STREQ(kind, "system-bus-name");
        EXPECT_STREQ(key, "name");
        static_cast<FakePolkit*>(userdata)->questions.push_back(
            {name, action, flags == 1, Message(sd_bus_message_ref(call))});
        return 1;
    }
    Bus bus_;
};

} // namespace affinityd::control
