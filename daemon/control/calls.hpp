// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "base/release.hpp"
#include "core/commands.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>

namespace affinityd::control {

/// A connection, closed without a flush: a flush waits for a peer that does not read.
using Bus = std::unique_ptr<sd_bus, Release<sd_bus_close_unref>>;
using Message = std::unique_ptr<sd_bus_message, Release<sd_bus_message_unref>>;
/// A pending call or a subscription, which ends with its owner.
using Slot = std::unique_ptr<sd_bus_slot, Release<sd_bus_slot_unref>>;
/// An event source, which ends with its owner.
using Source = std::unique_ptr<sd_event_source, Release<sd_event_source_disable_unref>>;

/// The answers of one connection, and the calls that are owed one, each of which holds it. A connection that
/// takes no message for five seconds while some wait is ended.
class Outbox : public std::enable_shared_from_this<Outbox> {
  public:
    /// `most`: messages that may wait, and calls that may be owed an answer. `end` ends the connection.
    /// `event` and all that `end` needs must live as long as the connection.
    Outbox(sd_event* event, sd_bus* bus, std::uint64_t most, std::function<void()> end);

    /// True: there is no room for the answer to a further call.
    [[nodiscard]] bool is_full() const;
    /// False: a reply is to be dropped.
    [[nodiscard]] bool has_room() const { return waiting() < most_; }
    /// A reply was sent.
    void sent();

  private:
    [[nodiscard]] std::uint64_t waiting() const;
    static int on_look(sd_event_source* source, std::uint64_t, void* userdata);

    sd_event* event_;
    std::unique_ptr<sd_bus, Release<sd_bus_unref>> bus_;
    std::uint64_t most_;
    std::function<void()> end_;
    std::uint64_t sent_ = 0; ///< since the start
    std::uint64_t left_ = 0; ///< of these had left the connection when the timer was set
    Source timer_;
};

/// A method call that has come in and is owed one reply, now or later. A call destroyed without a reply sends
/// an error, so that no caller waits in vain. A reply is dropped if the caller has gone, or the connection
/// has no room.
class Call {
  public:
    explicit Call(sd_bus_message* message) : message_(sd_bus_message_ref(message)) {}
    Call(Call&&) noexcept = default;
    Call& operator=(Call&&) = delete;
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call();

    /// Sends through the outbox of the call's connection.
    void send_through(std::shared_ptr<Outbox> outbox) { outbox_ = std::move(outbox); }

    void reply(const std::string& text);
    void reply(const Result<std::string>& result);
    /// `name` is a D-Bus error name.
    void fail(const char* name, const std::string& message);
    /// Replies to what asks too often or too much.
    void refuse(const std::string& why) { fail(SD_BUS_ERROR_LIMITS_EXCEEDED, why); }

    /// Valid until the reply.
    [[nodiscard]] sd_bus_message* message() const { return message_.get(); }
    /// Unique name of the caller on a message bus; "" on a private connection. A bus sets it, so it can be
    /// trusted there.
    [[nodiscard]] std::string sender() const;
    /// True if the caller lets its user be asked for a password.
    [[nodiscard]] bool allows_interaction() const;

  private:
    Message message_;
    std::shared_ptr<Outbox> outbox_; ///< null: not counted
};

inline constexpr const char* bus_name = "org.affinityd";
inline constexpr const char* object_path = "/org/affinityd";
inline constexpr const char* interface_name = "org.affinityd.Manager1";

/// Methods of org.affinityd.Manager1.
enum class Method : std::uint8_t {
    get_status,
    get_plan,
    get_history,
    get_names,
    get_trials,
    explain,
    reload,
    release,
    apply,
    measure,
    try_policy,
    end_trial,
    acknowledge
};

/// True for methods that change nothing.
[[nodiscard]] constexpr bool only_reads(Method method) { return method <= Method::explain; }

/// A call of one of the methods.
struct Request {
    Method method;
    std::string argument; ///< "" for methods without one
    Call call;
    core::Until until = core::Until::done; ///< for methods that change something
    uid_t user = 0;                        ///< who calls; root over the private socket
    std::vector<std::string> more{};       ///< arguments after the first
};

/// Takes the calls that come in over one kind of connection and decides whether they are carried out.
class Front {
  public:
    virtual ~Front() = default;
    virtual void take(Request request) = 0;
};

/// Adds the object /org/affinityd to a connection; 0 or a negative errno value. `front` must outlive the
/// connection.
int add_manager_object(sd_bus* bus, Front& front);

/// Carries requests out and answers them in full: for callers whose right to that has been checked.
class CommandRunner {
  public:
    /// Measures now; the answer is an Error if a measurement is running or none can be started.
    using Measure = std::function<void(core::Answer answer, core::Until until)>;
    /// `commands` must outlive this.
    CommandRunner(core::Commands& commands, Measure measure)
        : commands_(commands), measure_(std::move(measure)) {}

    void run(Request request);
    /// Carries out a method that only reads, for a caller that passes the answer on.
    void read(Method method, const std::string& argument, core::OwnedAnswer answer);

  private:
    core::Commands& commands_;
    Measure measure_;
};

} // namespace affinityd::control
