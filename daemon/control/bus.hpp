// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/calls.hpp"

#include <chrono>
#include <expected>
#include <functional>
#include <memory>
#include <string>

namespace affinityd::control {

/// A connection to the system bus: opened and kept without waiting, opened again when it breaks (the bus was
/// restarted), after a pause that grows from one second to five minutes. Also when the bus takes nothing from
/// it any more, which it does to senders of more than their receivers read.
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
        std::function<int(sd_bus*, std::shared_ptr<Outbox>)> prepare;
        /// A connection has ended; what was asked over it is answered no more.
        std::function<void()> lost;
        /// Takes a sentence for the log when the name is taken, lost, or cannot be had.
        std::function<void(const std::string&)> note;
    };
    /// Connects, and asks for `name` on each connection if it is not empty. `event` must outlive this. A
    /// missing bus is no fault: it is tried again.
    void start(sd_event* event, std::string name, Hooks hooks);

    /// Leaves the bus for good, without a flush.
    void stop();

    /// The connection; nullptr while there is none. Valid until the next turn of the loop.
    [[nodiscard]] sd_bus* connection() const { return link_.is_up ? link_.bus.get() : nullptr; }

    /// Takes no files that callers send along.
    static std::expected<Bus, int> open_system();

  private:
    struct Link {
        Bus bus;
        std::shared_ptr<Outbox> outbox;
        Slot filter, joining;
        bool is_up = false;
    };
    [[nodiscard]] int connect();
    [[nodiscard]] int join(sd_bus* bus, Slot& into);
    void begin_anew();
    void try_again(int code);
    void disconnect();
    void note(const std::string& sentence) const;
    static int on_message(sd_bus_message* message, void* userdata, sd_bus_error*);
    static int on_joined(sd_bus_message* reply, void* userdata, sd_bus_error*);
    void tell_of_name(sd_bus_message* reply) const;
    static int on_timer(sd_event_source*, std::uint64_t, void* userdata);

    Open open_;
    Hooks hooks_;
    std::string name_;
    sd_event* event_ = nullptr;
    Link link_;
    Source timer_;
    std::chrono::seconds pause_{1};
    bool is_replacing_ = false;     ///< a connection of ours that the bus may not have seen end
    bool is_absence_noted_ = false; ///< since the daemon last had its name
};

/// True if this process is a service of systemd's that is being stopped to be started again (`systemctl
/// restart`). Waits for the answer, a second at most; false where there is none.
[[nodiscard]] bool is_being_restarted();

} // namespace affinityd::control
