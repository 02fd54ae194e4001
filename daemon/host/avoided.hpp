// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/avoidances.hpp"

#include <chrono>

namespace affinityd::host {

/// Of ten minutes: a user whose processes make others wait for longer is avoided for a while.
inline constexpr std::chrono::seconds longest_of_user{1};

/// For all threads of this process, see Avoidances: a call on it does not come back, and has come back.
void begin_to_avoid(const Avoidable& what);
void end_to_avoid(const Avoidable& what);
[[nodiscard]] bool is_avoided(const Avoidable& what);

/// Somebody waited for as long for what this process has open. That is its user's, also in his user
/// namespaces (subuid(5)): he is avoided when it is too much. Root never is: his processes share sockets with
/// others' (a server's master with its workers), who may be those that make us wait.
void charge_wait(int pid, std::chrono::milliseconds time);

/// It is avoided, or its user is.
[[nodiscard]] bool is_process_avoided(int pid);

} // namespace affinityd::host
