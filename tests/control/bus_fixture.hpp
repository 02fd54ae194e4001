// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/server.hpp"
#include "fake_commands.hpp"
#include "message_bus.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace affinityd::control {

/// A server in this process on a message bus of its own, and one loop for it and those who call it.
class BusTest : public testing::Test {
  protected:
    BusTest() {
        EXPECT_GE(sd_event_new(&event_), 0);
        limits_.is_privileged = [](uid_t) { return false; };
    }
    ~BusTest() override {
        server_.reset();
        bus_.reset();
        calls_.reset();
        sd_event_unref(event_);
    }

    void serve() {
        bus_ = std::make_unique<SystemBus>([this] { return messages_.connect(); });
        calls_ = std::make_unique<SystemBus>([this] { return messages_.connect(); });
        auto started = Server::start(event_, tree_.path(), commands_,
                                     {[](core::Answer answer, core::Until) { answer(""); },
                                      [this](const auto& text) { notes_.push_back(text); }},
                                     {*bus_, *calls_}, limits_);
        ASSERT_TRUE(started) << started.error().to_string();
        server_ = std::move(*started);
    }
    void start() {
        messages_.start();
        serve();
        ASSERT_TRUE(run_until([&] { return noted("on the system bus as org.affinityd"); }));
    }

    /// Runs the loop until `done` says so; false after a minute.
    template <class Done>
    bool run_until(Done done) {
        const auto start = std::chrono::steady_clock::now();
        while (!done()) {
            if (std::chrono::steady_clock::now() - start > std::chrono::minutes(1)) return false;
            sd_event_run(event_, 10'000);
        }
        return true;
    }
    bool answered(const std::shared_ptr<Reply>& reply) {
        return run_until([&] { return reply->is_there; });
    }
    [[nodiscard]] bool noted(std::string_view beginning) const {
        return std::ranges::any_of(notes_, [&](const auto& note) { return note.starts_with(beginning); });
    }
    [[nodiscard]] bool was_asked(const std::string& what) const {
        return std::ranges::count(commands_.asked, what) > 0;
    }

    sd_event* event_ = nullptr;
    test::Tree tree_;
    MessageBus messages_;
    FakeCommands commands_;
    Server::Limits limits_;
    std::vector<std::string> notes_;
    std::unique_ptr<SystemBus> bus_, calls_;
    std::unique_ptr<Server> server_;
};

} // namespace affinityd::control
