// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/sink.hpp"

#include "base/clock.hpp"
#include "host/fd.hpp"
#include "host/self.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::ttcp {

namespace {

constexpr double look_seconds = 0.2; ///< between two looks for peers that have ended

class Peers {
  public:
    [[nodiscard]] unsigned count() const { return count_; }
    /// Forgets those that have ended.
    void reap() {
        pid_t ended = 0;
        while (count_ > 0 && (ended = ::waitpid(-1, nullptr, WNOHANG)) > 0)
            --count_;
        if (ended < 0 && errno == ECHILD) count_ = 0;
    }
    void add(const host::Root& root, const Sink& sink, const host::Fd& connection, int listener) {
        const pid_t parent = ::getpid();
        const pid_t child = ::fork();
        if (child > 0) ++count_;
        if (child != 0) return; // without a process the connection ends
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != parent) ::_exit(1); // the parent died before the line above
        ::close(listener);
        sink.show(run_connected(root, sink.session, connection.get()));
        ::_exit(0);
    }

  private:
    unsigned count_ = 0;
};

} // namespace

int serve(const host::Root& root, const Sink& sink, int listener) {
    if (!host::drop_privileges()) return 1;
    ::fcntl(listener, F_SETFL, ::fcntl(listener, F_GETFL) | O_NONBLOCK);
    ::signal(SIGCHLD, SIG_DFL); // where a parent had it ignored, children that end cannot be waited for
    Peers peers;
    double last = monotonic_seconds(); // when a peer was seen
    while (true) {
        peers.reap();
        const double now = monotonic_seconds();
        if (peers.count() > 0) last = now;
        const double left = last + sink.idle_exit_seconds - now;
        if (sink.idle_exit_seconds > 0 && left <= 0) return 0;
        pollfd item{listener, POLLIN, 0};
        const bool is_full = peers.count() >= sink.most_peers;
        double wait = sink.idle_exit_seconds > 0 ? left : 3600;
        if (peers.count() > 0) wait = std::min(wait, look_seconds);
        const int ready = ::poll(&item, is_full ? 0 : 1, static_cast<int>(wait * 1000) + 1);
        if (ready < 0 && errno != EINTR) return 1;
        if (ready <= 0) continue;
        const host::Fd connection(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
        if (connection) peers.add(root, sink, connection, listener);
        last = monotonic_seconds();
    }
}

} // namespace affinityd::ttcp
