// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "control/calls.hpp"
#include "control/join_wire.h"
#include "core/commands.hpp"
#include "host/fd.hpp"

#include <atomic>
#include <cstddef>
#include <expected>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace affinityd::control {

/// Reads a packet, any bytes; the sender is not filled in. Unexpected: the status with which it is refused, a
/// negative errno value: EBADMSG (no request), EPROTONOSUPPORT (of another version), ENOSYS (an unknown
/// wish), EINVAL (a wish that makes no sense).
[[nodiscard]] std::expected<core::JoinRequest, int> parse_join(std::span<const std::byte> packet);

/// The answer as it is sent.
[[nodiscard]] affinityd_join_reply reply_to(const core::JoinAnswer& answer);

/// The socket at which programs ask for their own threads (libaffinity(3)): open to all users, for one
/// request in each connection. Users pay with their budget; one whose budget is spent is disconnected. A turn
/// of the loop looks at requests for a millisecond. The latest 64 connections over
/// which nothing has come are kept.
class JoinSocket {
  public:
    /// Binds `path` and serves it from the loop. `event` and `joining` must outlive this.
    static Result<std::unique_ptr<JoinSocket>> start(sd_event* event, std::string path,
                                                     core::Joining& joining);
    /// For start().
    JoinSocket(sd_event* event, std::string path, core::Joining& joining);
    JoinSocket(const JoinSocket&) = delete;
    JoinSocket& operator=(const JoinSocket&) = delete;
    ~JoinSocket();

  private:
    struct Peer;
    [[nodiscard]] Result<void> listen();
    /// Takes in one that has connected. False: none has.
    [[nodiscard]] bool admit_next();
    /// False: nothing has come yet.
    [[nodiscard]] bool serve(Peer& peer);
    [[nodiscard]] affinityd_join_reply answer_to(Peer& peer);
    [[nodiscard]] int await(Peer& peer);
    void close(host::Fd connection);
    static int on_connect(sd_event_source*, int fd, std::uint32_t, void* userdata);
    static int on_packet(sd_event_source*, int fd, std::uint32_t, void* userdata);

    sd_event* event_;
    std::string path_;
    core::Joining& joining_;
    host::Fd listener_;
    std::vector<int> unclosed_; ///< connections for which no thread was to be had
    /// Connections that threads have not closed yet, and the ones above.
    std::shared_ptr<std::atomic<std::size_t>> closing_ = std::make_shared<std::atomic<std::size_t>>(0);
    std::list<Peer> silent_; ///< those that have sent nothing yet, in the order in which they came
    Source accept_;
};

/// Path of the socket in a runtime directory.
[[nodiscard]] std::string join_socket_path(const std::string& runtime_dir);

} // namespace affinityd::control
