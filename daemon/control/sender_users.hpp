// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/handles.hpp"

#include <functional>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

namespace affinityd::control {

/// Which user a sender on a message bus belongs to: asked of the bus itself, without waiting. What a message
/// says of its sender beyond the unique name is not trusted.
class SenderUsers {
  public:
    /// No value: the sender has gone, or the bus does not know.
    using Found = std::move_only_function<void(std::optional<uid_t>)>;

    /// Calls `found` now or later; never if the connection is dropped by forget(). What is found for one
    /// sender is told in the order in which it was asked. False, without a call: too much waits for the bus,
    /// or `bus` is nullptr.
    bool find(sd_bus* bus, const std::string& sender, Found found);
    /// Drops open questions and what is known: unique names belong to one run of the bus.
    void forget();

  private:
    struct Question {
        SenderUsers* asker = nullptr;
        std::string sender;
        std::vector<Found> waiting;
        Slot slot;
        std::list<Question>::iterator self;
    };
    bool ask(sd_bus* bus, const std::string& sender, Found found);
    static int on_reply(sd_bus_message* reply, void* userdata, sd_bus_error*);
    void learn(const std::string& sender, uid_t user);

    std::list<Question> open_; ///< one for each sender
    std::size_t waiting_ = 0;  ///< of all open questions
    std::unordered_map<std::string, uid_t> known_;
};

} // namespace affinityd::control
