// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/commands.hpp"
#include "base/error.hpp"
#include "control/handles.hpp"
#include "control/join_peer.hpp"
#include "control/join_wire.h"
#include "host/fd.hpp"

#include <cstdint>
#include <list>
#include <memory>
#include <string>

namespace affinityd::control {

/// The socket at which programs ask for their own threads (libaffinity(3)): open to all users, for one
/// request in each connection. Users pay with their budget; one whose budget is spent is disconnected. A turn
/// of the loop looks at requests for a millisecond. Of connections over which nothing has come, the latest 64
/// are kept.
class JoinSocket {
  public:
    /// Binds `path` and serves it from the loop. `event` and `joining` must outlive this.
    static Result<std::unique_ptr<JoinSocket>> start(sd_event* event, std::string path,
                                                     app::Joining& joining);
    /// For start().
    struct Listener {
        host::Fd fd;
        bool may_get_files; ///< the kernel cannot refuse those that are sent along
    };
    JoinSocket(sd_event* event, std::string path, app::Joining& joining, Listener listener)
        : event_(event), path_(std::move(path)), joining_(joining), listener_(std::move(listener)) {}
    JoinSocket(const JoinSocket&) = delete;
    JoinSocket& operator=(const JoinSocket&) = delete;
    ~JoinSocket();

  private:
    /// Has connected, and sent nothing yet.
    struct Silent {
        JoinSocket* socket = nullptr;
        JoinPeer peer;
        Source readable{};
    };
    [[nodiscard]] int listen();
    /// Takes in one that has connected. False: none has.
    [[nodiscard]] bool admit_next();
    /// False: nothing has come yet.
    [[nodiscard]] bool serve(JoinPeer& peer);
    [[nodiscard]] affinityd_join_reply answer_to(JoinPeer& peer);
    void await(JoinPeer peer);
    static int on_connect(sd_event_source*, int fd, std::uint32_t, void* userdata);
    static int on_packet(sd_event_source*, int fd, std::uint32_t, void* userdata);

    sd_event* event_;
    std::string path_;
    app::Joining& joining_;
    Listener listener_;
    std::list<Silent> silent_; ///< in the order in which they came
    Source accept_;
};

/// Path of the socket in a runtime directory.
[[nodiscard]] std::string join_socket_path(const std::string& runtime_dir);

} // namespace affinityd::control
