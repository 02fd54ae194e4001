// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/avoidances.hpp"

#include <chrono>
#include <optional>
#include <vector>

#include <sys/types.h>

namespace affinityd::host {

/// What all threads of this process avoid together, see Avoidances and WaitCharges.
struct Stuck {
    std::vector<Avoidable> what;
    std::optional<uid_t> payer; ///< see payer_of()
};
/// A call is; and it has come back.
void note_stuck(const Stuck& call);
void note_back(const Stuck& call);
[[nodiscard]] bool is_avoided(const Avoidable& what);

/// The daemon stops, and what cannot be put back now stays as it is: nothing is avoided any more only for
/// what was before.
void end_rests();

/// Who pays for what is waited for, of what this process has open: its user, also in his user namespaces
/// (subuid(5)); no value: it has ended, or it is root's. His processes share sockets with others' (a server's
/// master with its workers), who may be those that make us wait.
[[nodiscard]] std::optional<uid_t> payer_of(int pid);
/// Somebody waited for so long. He is avoided when it is too much.
void charge_wait(uid_t payer, std::chrono::milliseconds time);

/// It is avoided, or its user is.
[[nodiscard]] bool is_process_avoided(int pid);
/// That, or this of what it has open is.
[[nodiscard]] bool is_avoided(int pid, const Avoidable& what);

} // namespace affinityd::host
