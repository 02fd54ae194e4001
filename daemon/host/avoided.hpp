// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/avoidances.hpp"

#include <chrono>

namespace affinityd::host {

/// What all threads of this process avoid together, see Avoidances and WaitCharges.
void note_stuck(const Avoidable& what);
void note_back(const Avoidable& what);
[[nodiscard]] bool is_avoided(const Avoidable& what);

/// Somebody waited for as long for what this process has open. That is its user's, also in his user
/// namespaces (subuid(5)): he is avoided when it is too much. Root never is: his processes share sockets with
/// others' (a server's master with its workers), who may be those that make us wait.
void charge_wait(int pid, std::chrono::milliseconds time);

/// It is avoided, or its user is.
[[nodiscard]] bool is_process_avoided(int pid);
/// That, or this of what it has open is.
[[nodiscard]] bool is_avoided(int pid, const Avoidable& what);

} // namespace affinityd::host
