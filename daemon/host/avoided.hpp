// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace affinityd::host {

/// What is not touched for ten minutes, as a system call on it did not come back.
enum class Avoid : std::uint8_t {
    process, ///< by number
    inode,   ///< a socket, which many processes may have open
    cookie,  ///< the same, by SO_COOKIE
    user     ///< whose processes made others wait for longer than `longest_of_user`
};

/// Of the last ten minutes.
inline constexpr std::chrono::seconds longest_of_user{1};

void avoid(Avoid kind, std::uint64_t number);
[[nodiscard]] bool is_avoided(Avoid kind, std::uint64_t number);

/// Somebody waited for as long for what this process has open. That is its user's, also in his user
/// namespaces (subuid(5)): he is avoided when it is too much. Root never is: his processes share sockets with
/// others' (a server's master with its workers), who may be those that make us wait.
void charge_wait(int pid, std::chrono::milliseconds time);

/// It is avoided, or its user is.
[[nodiscard]] bool is_process_avoided(int pid);

} // namespace affinityd::host
