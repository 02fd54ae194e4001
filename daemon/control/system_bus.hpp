// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/handles.hpp"

#include <chrono>
#include <expected>
#include <functional>
#include <string>

namespace affinityd::control {

/// The daemon's one connection to the system bus: opened and kept without waiting, opened again when it
/// breaks (the bus was restarted), after a pause that grows from one second to five minutes. Whoever calls
/// services on the bus shares it.
class SystemBus {
  public:
    /// Opens a connection; the error is an errno value. Must not wait: calls are queued until the bus
    /// answers.
    using Open = std::function<std::expected<Bus, int>()>;
    explicit SystemBus(Open open = open_system);
    SystemBus(const SystemBus&) = delete;
    SystemBus& operator=(const SystemBus&) = delete;
    ~SystemBus();

    struct Hooks {
        /// Prepares each new connection before messages arrive on it, such as with objects; 0 or a negative
        /// errno value.
        std::function<int(sd_bus*)> prepare;
        /// A connection has ended; what was asked over it is answered no more.
        std::function<void()> lost;
        /// One sentence for the log, when the name is taken, lost, or cannot be had.
        std::function<void(const std::string&)> note;
    };
    /// Connects, and asks for `name` on each connection. `event` must outlive this. That there is no bus is
    /// no fault: it is tried again.
    void start(sd_event* event, std::string name, Hooks hooks);

    /// Leaves the bus for good.
    void stop();

    /// The connection; nullptr while there is none. Valid until the next turn of the loop.
    [[nodiscard]] sd_bus* connection() const { return is_connected_ ? bus_.get() : nullptr; }

    static std::expected<Bus, int> open_system();

  private:
    [[nodiscard]] int connect();
    [[nodiscard]] int prepare(Bus bus);
    void try_again(int code);
    void disconnect();
    void note(const std::string& sentence) const;
    static int on_message(sd_bus_message* message, void* userdata, sd_bus_error*);
    static int on_name(sd_bus_message* reply, void* userdata, sd_bus_error*);
    static int on_timer(sd_event_source*, std::uint64_t, void* userdata);
    static int on_end(sd_event_source*, void* userdata);

    Open open_;
    Hooks hooks_;
    std::string name_;
    sd_event* event_ = nullptr;
    Bus bus_;
    Slot filter_, naming_;
    Source timer_, end_;
    bool is_connected_ = false;
    std::chrono::seconds pause_{1};
    bool is_absence_noted_ = false; ///< since the daemon last had its name
};

} // namespace affinityd::control
