// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/fd.hpp"

namespace affinityd::control {

/// A connection with anybody. Files may come along with each packet; whoever takes such a packet, or closes a
/// connection that still holds it, closes them, and that may take as long as its sender likes (a connection
/// that lingers, a file system of one's own). So a connection over which something has come that nobody has
/// read is closed by a thread; but not where the kernel lets no files come (SO_PASSRIGHTS off, Linux 6.16).
class JoinConnection {
  public:
    /// `may_hold_files`: the kernel lets files come.
    JoinConnection(host::Fd fd, bool may_hold_files) : fd_(std::move(fd)), may_hold_files_(may_hold_files) {}
    JoinConnection(JoinConnection&&) = default;
    JoinConnection& operator=(JoinConnection&&) = delete;
    JoinConnection(const JoinConnection&) = delete;
    JoinConnection& operator=(const JoinConnection&) = delete;
    ~JoinConnection();

    [[nodiscard]] int fd() const { return fd_.get(); }
    [[nodiscard]] bool may_hold_files() const { return may_hold_files_; }
    /// False: so many are not closed yet that no further ones should be taken in.
    [[nodiscard]] static bool has_room();

  private:
    host::Fd fd_;
    bool may_hold_files_;
};

} // namespace affinityd::control
