// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

struct sd_bus;

namespace affinityd::control {

/// How much was given to one connection since all of it had last left: at least what the daemon keeps in
/// memory for a peer, or a message bus, that does not take it. sd-bus itself counts messages, not bytes.
class Backlog {
  public:
    /// `most`: bytes after which nothing long is to follow.
    explicit Backlog(std::size_t most) : most_(most) {}

    /// False: answers are to be refused for now.
    [[nodiscard]] bool has_room(sd_bus* bus);
    /// False: not even a refusal is to be sent.
    [[nodiscard]] bool has_room_for_refusals(sd_bus* bus);
    /// A message with so many bytes of text was sent.
    void add(std::size_t bytes);

    /// True if more messages wait in the connection than any peer that reads leaves there.
    [[nodiscard]] static bool is_swamped(sd_bus* bus);

  private:
    void forget_what_left(sd_bus* bus);
    std::size_t most_, bytes_ = 0;
};

} // namespace affinityd::control
