// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/calls.hpp"
#include "support/tree.hpp"

#include <cerrno>
#include <csignal>
#include <expected>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::control {

/// A message bus of the test's own: dbus-daemon(1) on a socket in a temporary folder.
class MessageBus {
  public:
    /// `limits`: XML elements of bus.conf.
    explicit MessageBus(const std::string& limits = {}) { configure(limits); }
    void configure(const std::string& limits) {
        tree_.file("bus.conf",
                   "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\" "
                   "\"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n"
                   "<busconfig><listen>unix:path=" +
                       socket() +
                       "</listen><auth>EXTERNAL</auth><policy context=\"default\">"
                       "<allow send_destination=\"*\" eavesdrop=\"false\"/>"
                       "<allow receive_sender=\"*\"/><allow own=\"*\"/><allow user=\"*\"/>"
                       "</policy>" +
                       limits + "</busconfig>\n");
    }
    MessageBus(const MessageBus&) = delete;
    MessageBus& operator=(const MessageBus&) = delete;
    ~MessageBus() { stop(); }

    void start() {
        ::unlink(socket().c_str());
        const std::string config = "--config-file=" + tree_.path("bus.conf");
        pid_ = ::fork();
        if (pid_ == 0) {
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            ::execlp("dbus-daemon", "dbus-daemon", config.c_str(), "--nofork", "--nopidfile", nullptr);
            ::_exit(127);
        }
        for (int turn = 0; turn < 4000 && !listens(); ++turn)
            ::usleep(5000);
        ASSERT_TRUE(listens()) << "dbus-daemon does not start";
    }
    void stop() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
        pid_ = 0;
        ::unlink(socket().c_str());
    }

    /// As SystemBus::Open.
    [[nodiscard]] std::expected<Bus, int> connect() const {
        sd_bus* raw = nullptr;
        if (const int status = sd_bus_new(&raw); status < 0) return std::unexpected(-status);
        Bus bus(raw);
        int status = sd_bus_set_address(raw, ("unix:path=" + socket()).c_str());
        if (status >= 0) status = sd_bus_set_bus_client(raw, 1);
        if (status >= 0) status = sd_bus_start(raw);
        if (status < 0) return std::unexpected(-status);
        return bus;
    }
    [[nodiscard]] std::string socket() const { return tree_.path("bus"); }

  private:
    [[nodiscard]] bool listens() const {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        socket().copy(address.sun_path, sizeof address.sun_path - 1);
        const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const bool is_there = ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
        ::close(fd);
        return is_there;
    }

    test::Tree tree_;
    pid_t pid_ = 0;
};

/// The outcome of a call.
struct Reply {
    bool is_there = false;
    std::string text;
    std::string error; ///< name of the D-Bus error; "" on success
    std::string message;
};

/// A program that calls the daemon over the bus.
class BusCaller {
  public:
    BusCaller(const MessageBus& bus, sd_event* event) {
        auto opened = bus.connect();
        EXPECT_TRUE(opened);
        if (opened) bus_ = std::move(*opened);
        EXPECT_GE(sd_bus_attach_event(bus_.get(), event, SD_EVENT_PRIORITY_NORMAL), 0);
    }

    std::shared_ptr<Reply> call(const char* method, const char* argument = nullptr, bool interactive = false,
                                const char* destination = "org.affinityd") {
        auto reply = std::make_shared<Reply>();
        sd_bus_message* raw = nullptr;
        EXPECT_GE(sd_bus_message_new_method_call(bus_.get(), &raw, destination, "/org/affinityd",
                                                 "org.affinityd.Manager1", method),
                  0);
        const Message message(raw);
        if (argument != nullptr) {
            EXPECT_GE(sd_bus_message_append(raw, "s", argument), 0);
        }
        sd_bus_message_set_allow_interactive_authorization(raw, interactive ? 1 : 0);
        auto* kept = new std::shared_ptr<Reply>(reply); // freed by the slot
        sd_bus_slot* slot = nullptr;
        EXPECT_GE(sd_bus_call_async(bus_.get(), &slot, raw, on_reply, kept, 60'000'000), 0);
        sd_bus_slot_set_destroy_callback(
            slot, [](void* userdata) { delete static_cast<std::shared_ptr<Reply>*>(userdata); });
        sd_bus_slot_set_floating(slot, 1);
        sd_bus_slot_unref(slot);
        return reply;
    }
    void leave() { bus_.reset(); }
    /// From now on nothing is read of what the bus has for this one.
    void stop_reading() { sd_bus_detach_event(bus_.get()); }
    /// Sends calls whose replies stay with the bus.
    void call_unheard(const char* method, int times, const char* interface = "org.affinityd.Manager1") {
        for (int i = 0; i < times; ++i) {
            sd_bus_message* raw = nullptr;
            EXPECT_GE(sd_bus_message_new_method_call(bus_.get(), &raw, "org.affinityd", "/org/affinityd",
                                                     interface, method),
                      0);
            const Message message(raw);
            std::uint64_t cookie = 0; // without one no answer is wanted
            EXPECT_GE(sd_bus_send(bus_.get(), raw, &cookie), 0);
        }
        EXPECT_GE(sd_bus_flush(bus_.get()), 0);
    }

  private:
    static int on_reply(sd_bus_message* message, void* userdata, sd_bus_error*) {
        auto& reply = **static_cast<std::shared_ptr<Reply>*>(userdata);
        reply.is_there = true;
        if (const auto* error = sd_bus_message_get_error(message); error != nullptr) {
            reply.error = error->name;
            reply.message = error->message == nullptr ? "" : error->message;
            return 0;
        }
        const char* text = "";
        sd_bus_message_read(message, "s", &text);
        reply.text = text;
        return 0;
    }
    Bus bus_;
};

} // namespace affinityd::control
