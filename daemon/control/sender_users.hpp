// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/handles.hpp"

#include <functional>
#include <list>
#include <optional>
#include <string>

#include <sys/types.h>

namespace affinityd::control {

/// Which user a sender on a message bus belongs to: asked of the bus itself for each call, without waiting.
/// What a message says of its sender beyond the unique name is not trusted.
class SenderUsers {
  public:
    /// No value: the sender has gone, or the bus does not know.
    using Found = std::move_only_function<void(std::optional<uid_t>)>;

    /// Calls `found` later, in the order in which it was asked; never if forget() drops the question. False,
    /// without a call: 256 questions are open, or `bus` is nullptr.
    bool find(sd_bus* bus, const std::string& sender, Found found);
    /// Drops open questions.
    void forget() { open_.clear(); }

  private:
    struct Question {
        SenderUsers* asker = nullptr;
        Found found;
        Slot slot;
        std::list<Question>::iterator self;
    };
    static int on_reply(sd_bus_message* reply, void* userdata, sd_bus_error*);

    std::list<Question> open_;
};

} // namespace affinityd::control
