// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "control/handles.hpp"
#include "control/outbox.hpp"

#include <memory>
#include <string>

namespace affinityd::control {

/// A method call that has come in and is owed one reply, now or later. One that is destroyed without a reply
/// gets an error, so that no caller waits in vain. A reply to a caller that has gone is lost without harm,
/// and one for which the connection has no room is dropped.
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
    /// False: a reply would be dropped, and need not be worked out.
    [[nodiscard]] bool has_room() const { return !outbox_ || outbox_->has_room(); }

    void reply(const std::string& text);
    void reply(const Result<std::string>& result);
    /// `name` is a D-Bus error name.
    void fail(const char* name, const std::string& message);

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

/// Replies to what asks too often or too much.
void fail_for_limits(Call& call, const std::string& what);

} // namespace affinityd::control
