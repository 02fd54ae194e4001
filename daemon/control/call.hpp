// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "control/backlog.hpp"
#include "control/handles.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace affinityd::control {

/// A method call that has come in and is owed one reply, now or later. One that is destroyed without a reply
/// gets an error, so that no caller waits in vain. A reply to a caller that has gone is lost without harm;
/// one for which the connection has no room becomes LimitsExceeded.
class Call {
  public:
    explicit Call(sd_bus_message* message) : message_(sd_bus_message_ref(message)) {}
    Call(Call&&) noexcept = default;
    Call& operator=(Call&&) = delete;
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;
    ~Call();

    /// Counts what is sent in the backlog of the call's connection.
    void count_in(std::shared_ptr<Backlog> backlog) { backlog_ = std::move(backlog); }
    /// `share` is asked whether an answer of so many bytes may be sent, and counts it as sent if so. It may
    /// be asked after the end of whoever gives it.
    void limit_to(std::function<bool(std::size_t)> share) { share_ = std::move(share); }
    [[nodiscard]] bool has_room() const;

    void reply(const std::string& text);
    void reply(const Result<std::string>& result);
    /// `name` is a D-Bus error name.
    void fail(const char* name, const std::string& message);
    /// Leaves the call without a reply: for floods, whose refusals would be a flood, too.
    void ignore() { message_.reset(); }

    /// Valid until the reply.
    [[nodiscard]] sd_bus_message* message() const { return message_.get(); }
    /// Unique name of the caller on a message bus; "" on a private connection. A bus sets it, so it can be
    /// trusted there.
    [[nodiscard]] std::string sender() const;
    /// True if the caller lets its user be asked for a password.
    [[nodiscard]] bool allows_interaction() const;

  private:
    Message message_;
    std::shared_ptr<Backlog> backlog_; ///< null: not counted
    std::function<bool(std::size_t)> share_;
};

/// To users who were told more than their share.
inline constexpr const char* told_enough = "too much was told to this user of late: try again in a minute";

/// Replies to what asks too often or too much.
void fail_for_limits(Call& call, const std::string& what);

} // namespace affinityd::control
