// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/joining.hpp"
#include "base/error.hpp"
#include "control/handles.hpp"
#include "control/join_peer.hpp"
#include "control/join_wire.h"
#include "control/rate_limit.hpp"
#include "host/fd.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>

namespace affinityd::control {

/// The socket at which programs ask for their own threads (libaffinity(3)): open to all users, for one
/// request in each connection. A turn of the loop looks at one request at most, so that an exec waits
/// behind no more. Users and processes have limits; who asks more often is told so (EAGAIN) without a look at
/// what it asks. Those, and the ones who have gone, are many to a turn, until a process waits to be placed.
/// Who connects and sends nothing makes room for others, and is disconnected after a second.
class JoinSocket {
  public:
    struct Limits {
        double of_user = 1000, of_user_at_once = 4000; ///< connections a second, of all of a user's processes
        double of_process = 500, of_process_at_once = 2000; ///< the same of one process
        std::size_t silent = 64, silent_of_user = 16;       ///< connections on which nothing has come yet
        std::chrono::milliseconds silence{1000};            ///< after which one is closed
        /// Time for those who ask too often or have gone: of a turn, and of turns that follow each other.
        std::chrono::microseconds refusals{1000}, refusals_at_once{5000};
    };
    struct Others {
        app::Joining& joining;            ///< must outlive this
        std::function<bool()> is_awaited; ///< a process waits to be placed
    };
    /// Binds `path` and serves it from the loop. `event` must outlive this.
    static Result<std::unique_ptr<JoinSocket>> start(sd_event* event, std::string path, Others others,
                                                     Limits limits);
    /// For start().
    struct Listener {
        host::Fd fd;
        bool may_get_files; ///< the kernel cannot refuse those that are sent along
    };
    JoinSocket(sd_event* event, std::string path, Others others, Limits limits, Listener listener);
    JoinSocket(const JoinSocket&) = delete;
    JoinSocket& operator=(const JoinSocket&) = delete;
    ~JoinSocket();

  private:
    using Clock = std::chrono::steady_clock;
    /// Has connected, and sent nothing yet.
    struct Silent {
        JoinSocket* socket = nullptr;
        JoinPeer peer;
        uid_t person = 0;
        Source readable{}, deadline{};
    };
    enum class Served {
        looked_at,
        too_often, ///< which takes little time, as does the next
        gone,
        nothing_yet,
        nobody, ///< has connected
    };
    [[nodiscard]] int listen();
    [[nodiscard]] bool may(const JoinPeer& peer, uid_t person);
    [[nodiscard]] Served admit_next();
    void admit_some();
    [[nodiscard]] Served serve(JoinPeer& peer, uid_t person, bool is_too_often);
    [[nodiscard]] affinityd_join_reply answer_to(JoinPeer& peer, uid_t person);
    void await(JoinPeer peer, uid_t person);
    void make_room(uid_t person);
    void drop(const Silent& one);
    static int on_connect(sd_event_source*, int fd, std::uint32_t, void* userdata);
    static int on_packet(sd_event_source*, int fd, std::uint32_t, void* userdata);
    static int on_deadline(sd_event_source*, std::uint64_t, void* userdata);

    sd_event* event_;
    std::string path_;
    Others others_;
    Limits limits_;
    Listener listener_;
    RateLimit users_, processes_;
    TokenBucket refusing_;     ///< microseconds of it
    std::list<Silent> silent_; ///< in the order in which they came
    Source accept_;
};

/// Path of the socket in a runtime directory.
[[nodiscard]] std::string join_socket_path(const std::string& runtime_dir);

} // namespace affinityd::control
