// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include <sys/types.h>

namespace affinityd::app {

/// What a thread asks for itself. Who asks is what the kernel says of the sender; `tid` and `own_pid` are
/// what the message says, in the numbers of the sender's own pid namespace.
struct JoinRequest {
    enum class Wish : std::uint8_t {
        join,  ///< to be put into `slot`
        serve, ///< to be put where packets arrive: on `cpu`
        leave, ///< to be placed by its name again
        where, ///< only to be told
    };
    int pid = 0;
    Wish wish = Wish::where;
    int own_pid = 0, tid = 0;
    std::string slot{};
    unsigned cpu = 0;
    /// False: the sender has ended, and its number may be another process's by now.
    std::function<bool()> is_alive{};
};

enum class JoinOutcome : std::uint8_t {
    done,
    no_daemon,   ///< it is ending, or not yet ready: as if there were none
    not_yours,   ///< the thread is none of the sender's
    no_policy,   ///< no policy wants the process
    not_allowed, ///< its policy does not let it join that
    released,    ///< its policy, or itself, was let go by hand
    too_many,    ///< as many threads have joined as can be remembered
    put_off,     ///< it has joined, but cannot be placed now: `explain` says why
    no_slot,     ///< it has no slot of its own, or none of its slots has that CPU
    crowded,     ///< the slot with that CPU has more than its share of the work
};

struct JoinAnswer {
    JoinOutcome outcome = JoinOutcome::done;
    std::string policy{}; ///< that its process is under; "": none
    std::string slot{};   ///< that it has joined; "": none
    bool serves = false;  ///< it is where packets arrive
};

/// Takes what programs ask for their own threads, whatever carries it. Each request takes a millisecond at
/// most.
class Joining {
  public:
    virtual ~Joining() = default;
    virtual JoinAnswer ask(const JoinRequest& request) = 0;
    /// False: the budget of this user, with all subordinate ids, is spent.
    [[nodiscard]] virtual bool may_ask(uid_t user) = 0;
    /// A user's request took so long.
    virtual void charge(uid_t user, std::chrono::nanoseconds time) = 0;
};

} // namespace affinityd::app
