// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace affinityd::host {

/// How long a call into what another process has open may wait.
inline constexpr std::chrono::milliseconds longest_call{100};

/// Why a call has no answer, as errno values EBUSY and EAGAIN.
enum class Unanswered : std::uint8_t {
    stuck,    ///< it has not come back, and what it was made on is avoided
    not_begun ///< too many others have not come back, or there is no thread: nothing is known of it
};

[[nodiscard]] int to_errno(Unanswered why);

/// CPU time of the calling thread, and of the calls that were made for it and have come back.
[[nodiscard]] std::chrono::nanoseconds thread_time_with_calls();

/// What a call uses at the moment, by its own account; 0: nothing of that kind.
struct InUse {
    std::atomic<int> pid = 0;                         ///< whose open files
    std::atomic<std::uint64_t> inode = 0, cookie = 0; ///< a socket
    /// Nobody waits for the answer any more: nothing more is to be begun. Asked after a process or a socket
    /// was noted, either it is true, or that is avoided when the call gets stuck.
    std::atomic<bool> is_given_up = false;
};

namespace detail {

/// What a thread runs, and what both it and the caller have.
struct PatientCall {
    virtual ~PatientCall() = default;
    virtual void run() = 0;
    InUse in_use;
    std::chrono::nanoseconds used{0}; ///< CPU time, when it has ended
};

/// Why it has not ended; no value: it has.
std::optional<Unanswered> run_patiently(const std::shared_ptr<PatientCall>& call);

} // namespace detail

/// Runs a call that may wait as long as another process likes, on a thread: system calls on a socket take its
/// lock, and who has the socket open may hold that for as long as a page fault of his takes, userfaultfd(2)
/// or a file system of his own; files of /proc take others. The wait cannot be interrupted, not even by
/// SIGKILL, so that a process with such a thread ends only when that is over. The caller waits for
/// `longest_call`, and longer, up to five seconds, while the thread only needs a CPU. `call` must own all
/// that it uses, and says in its argument what that is: the process pays for what the caller waits, see
/// charge_wait(). A call that does not come back is left to itself, and what it used then is avoided for a
/// while, see Avoidances; a change that it was to make may come later, or not at all. At most 64 are left to
/// themselves.
template <class Result>
[[nodiscard]] std::expected<Result, Unanswered> patiently(std::function<Result(InUse&)> call) {
    struct Call final : detail::PatientCall {
        explicit Call(std::function<Result(InUse&)> what) : function(std::move(what)) {}
        void run() override { result.emplace(function(in_use)); }
        std::function<Result(InUse&)> function;
        std::optional<Result> result;
    };
    const auto shared = std::make_shared<Call>(std::move(call));
    if (const auto why = detail::run_patiently(shared)) return std::unexpected(*why);
    return *std::move(shared->result);
}

} // namespace affinityd::host
