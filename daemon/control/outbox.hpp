// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/release.hpp"
#include "control/handles.hpp"

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <memory>

namespace affinityd::control {

/// Bounds the messages that wait in a connection because its other end does not take them. A connection with
/// 1,024 of them, or of a group that holds too many bytes, gets no further reply; calls that
/// are not answered yet share it and count as messages. One that takes nothing for
/// `patience` is closed, and at once if a connection without waiting messages needs its room.
class Outbox : public std::enable_shared_from_this<Outbox> {
  public:
    struct Limits {
        std::size_t bytes; ///< of all connections of the group together
        std::chrono::milliseconds patience{5000};
    };
    /// Connections with a common limit.
    struct Group {
        Limits limits;
        std::size_t bytes = 0;
        std::list<Outbox*> members{};
    };
    /// `end` closes the connection. `event` and what `end` needs must live as long as it is open.
    Outbox(sd_event* event, sd_bus* bus, std::shared_ptr<Group> group, std::function<void()> end);
    Outbox(const Outbox&) = delete;
    Outbox& operator=(const Outbox&) = delete;
    ~Outbox();

    /// For filters: true for a call on which no reply may follow.
    [[nodiscard]] bool drops(sd_bus_message* message);
    /// False: the reply is to be dropped.
    [[nodiscard]] bool has_room();
    /// A reply with so many bytes of text was sent.
    void sent(std::size_t bytes);

  private:
    void look();
    void let_go(std::size_t waiting);
    void close();
    static int on_look(sd_event_source*, std::uint64_t, void* userdata);

    sd_event* event_;
    std::unique_ptr<sd_bus, Release<sd_bus_unref>> bus_;
    std::shared_ptr<Group> group_;
    std::function<void()> end_;
    std::deque<std::size_t> waiting_; ///< bytes of replies, the oldest first
    std::size_t bytes_ = 0;           ///< of these
    std::size_t messages_ = 0;        ///< that wait, with those that the library sent by itself
    int unsent_ = 0;                  ///< bytes in the socket
    unsigned looks_ = 0;              ///< running, at which nothing had left
    bool is_closed_ = false;
    Source timer_;
};

} // namespace affinityd::control
