// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/fd.hpp"

#include <chrono>
#include <optional>

namespace affinityctl {

/// A socket of another process, held for as long as this object lives: keep that short, because whoever
/// closes it meanwhile has its FIN delayed until then. pidfd_getfd(2), Linux 5.6; needs CAP_SYS_PTRACE.
class ForeignSocket {
  public:
    /// `process`: of pidfd_open(2); `number`: a descriptor of it. An Error: it is closed, gone, not allowed
    /// or no socket.
    static affinityd::Result<ForeignSocket> open(const affinityd::host::Fd& process, int number);

    /// SO_INCOMING_CPU: the CPU where the last packet was taken in; no value: none came yet.
    [[nodiscard]] std::optional<unsigned> incoming_cpu() const;
    /// SO_INCOMING_NAPI_ID; 0: not known.
    [[nodiscard]] unsigned napi_id() const;
    [[nodiscard]] bool is_listening() const;
    /// How long ago data came in over an established TCP connection; no value: it is something else.
    [[nodiscard]] std::optional<std::chrono::milliseconds> silence() const;

  private:
    explicit ForeignSocket(affinityd::host::Fd socket) : socket_(std::move(socket)) {}
    [[nodiscard]] std::optional<int> option(int name) const;
    affinityd::host::Fd socket_;
};

} // namespace affinityctl
