// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/join_connection.hpp"
#include "host/fd.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include <sys/types.h>

namespace affinityd::control {

/// One who has connected to the socket that is open to all, as the kernel knows it.
class JoinPeer {
  public:
    static constexpr std::size_t longest = 128; ///< bytes of a packet; what is longer is cut, and so refused

    /// No value: it is gone, or in no pid namespace that we can see into.
    [[nodiscard]] static std::optional<JoinPeer> of(JoinConnection connection);
    /// From here on is_alive() is of this process, and of no later one with its number. False: it has ended.
    [[nodiscard]] bool hold();

    [[nodiscard]] int fd() const { return connection_.fd(); }
    [[nodiscard]] pid_t pid() const { return pid_; } ///< that connected
    [[nodiscard]] uid_t user() const { return user_; }
    /// False: it has ended, and its number may be another's by now. Kernels before 6.5 give no handle of a
    /// peer: there it counts as alive while its end of the connection is open.
    [[nodiscard]] bool is_alive() const;

    enum class Read {
        packet,
        nothing_yet,
        not_its_own, ///< another process than the one that connected, or one with another user, has sent it;
                     ///< or there are files beside it
        gone,
    };
    [[nodiscard]] Read read();
    [[nodiscard]] std::span<const std::byte> packet() const { return std::span(packet_).first(size_); }
    void answer(std::span<const std::byte> reply) const;

  private:
    JoinPeer(JoinConnection connection, pid_t pid, uid_t user)
        : connection_(std::move(connection)), pid_(pid), user_(user) {}
    JoinConnection connection_;
    host::Fd process_;
    pid_t pid_;
    uid_t user_;
    std::array<std::byte, longest> packet_{};
    std::size_t size_ = 0;
};

} // namespace affinityd::control
