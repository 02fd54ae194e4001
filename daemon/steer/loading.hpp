// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/root.hpp"

#include <string>

namespace affinityd::steer {

/// To be called before a program for the kernel is loaded: libbpf prints no warnings of its own from then on.
/// An Error: here BPF would count, but by numbers of processes that mean nothing here (a PID namespace of its
/// own).
[[nodiscard]] Result<void> prepare_bpf(const host::Root& root);

/// Why a program was refused, for users; `code` is an errno value, `needs` what it asks of the kernel beyond
/// BTF: "the tracepoint tcp:tcp_rcv_space_adjust".
[[nodiscard]] Error refused_bpf(int code, const std::string& needs);

} // namespace affinityd::steer
