// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace affinityd::host {

/// How long a call into what another process has open may take before it is looked at whether it waits.
inline constexpr std::chrono::milliseconds longest_call{100};

namespace detail {

/// What a thread runs, and what both it and the caller have.
struct PatientCall {
    virtual ~PatientCall() = default;
    virtual void run() = 0;
    std::atomic<int> pid = 0; ///< whose open files it uses at the moment
};

/// True if it has ended. False: it goes on by itself, or could not begin.
bool run_patiently(const std::shared_ptr<PatientCall>& call);

} // namespace detail

/// Runs a call that may wait as long as another process likes, on a thread: system calls on a socket take its
/// lock, and who has the socket open may hold that for as long as a page fault of his takes, userfaultfd(2)
/// or a file system of his own; the wait cannot be interrupted, not even by SIGKILL, so that a process with
/// such a thread ends only when that is over. The caller waits for `longest_call`, and longer, up to five
/// seconds, while the thread only needs a CPU. `call` must own all that it uses, and sets its argument to the
/// process whose sockets it uses, 0: none: a call that does not come back is left to itself, and that
/// process's files are not touched for a while, see is_avoided(). No value: it has not come back; or sixteen
/// others have not, and it was not begun.
template <class Result>
[[nodiscard]] std::optional<Result> patiently(std::function<Result(std::atomic<int>& pid)> call) {
    struct Call final : detail::PatientCall {
        explicit Call(std::function<Result(std::atomic<int>&)> what) : function(std::move(what)) {}
        void run() override { result.emplace(function(pid)); }
        std::function<Result(std::atomic<int>&)> function;
        std::optional<Result> result;
    };
    const auto shared = std::make_shared<Call>(std::move(call));
    if (!detail::run_patiently(shared)) return std::nullopt;
    return std::move(shared->result);
}

/// What is not touched for ten minutes, as a call did not come back.
enum class Avoid : std::uint8_t {
    process, ///< by number
    inode,   ///< a socket, which many processes may have open
    cookie   ///< the same, by SO_COOKIE
};
void avoid(Avoid kind, std::uint64_t number);
[[nodiscard]] bool is_avoided(Avoid kind, std::uint64_t number);

} // namespace affinityd::host
