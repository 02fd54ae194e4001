// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/root.hpp"

#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace affinityctl {

/// The system call in which a thread waits, from the text of /proc/PID/task/TID/syscall.
struct WaitingCall {
    long number = 0;
    int first = -1; ///< its first argument: a descriptor, for those that matter here
};
/// No value: it runs, or the text is no such line.
[[nodiscard]] std::optional<WaitingCall> parse_syscall(std::string_view text);
/// The descriptors that an epoll instance watches: the "tfd:" lines of /proc/PID/fdinfo/N,
/// proc_pid_fdinfo(5).
[[nodiscard]] std::vector<int> parse_epoll_targets(std::string_view text);

/// Which thread of a process reads which descriptor, as far as threads wait for them: in epoll_wait(2), or in
/// a read of that descriptor. What a thread waited for is remembered while it runs.
class SocketReaders {
  public:
    SocketReaders(const affinityd::host::Root& root, int pid) : root_(&root), pid_(pid) {}
    /// Looks at the first 512 threads.
    void look();
    /// tid; no value: not known. The only thread of a process reads all.
    [[nodiscard]] std::optional<int> reader_of(int descriptor) const;

  private:
    void note_targets(int epoll, int tid);
    const affinityd::host::Root* root_;
    int pid_;
    bool is_single_ = true;
    std::map<int, int> readers_; ///< descriptor -> tid
};

} // namespace affinityctl
