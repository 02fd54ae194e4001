// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace affinityd::host {

/// How long a call into what another process has open may take before it is left to itself; longer while it
/// waits for nothing but a CPU.
inline constexpr std::chrono::milliseconds longest_call{50};

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
/// or a file system of his own; the wait cannot be interrupted, not even by SIGKILL. The caller waits no
/// longer than `longest_call`. `call` must own all that it uses, and says whose open files it uses by
/// `PatientCall::pid`: a call that does not come back is left to itself, and that process's files are not
/// touched for a while, see is_avoided(). No value: it has not come back; or sixteen others have not, and it
/// was not begun.
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

/// A call into this process's files did not come back within the last ten minutes.
[[nodiscard]] bool is_avoided(int pid);

} // namespace affinityd::host
