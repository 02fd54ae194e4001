// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "base/owned_text.hpp"

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace affinityd::core {

/// Takes a command's result: called at most once, within the command or later on the same thread. An Answer
/// destroyed without a call tells the caller that none will come.
using Answer = std::move_only_function<void(Result<std::string>)>;
/// The same for what some callers may read in part only.
using OwnedAnswer = std::move_only_function<void(Result<OwnedText>)>;

/// When who gave a command is answered.
enum class Until {
    begun, ///< as soon as it is accepted
    done,  ///< when it has been carried out
};

/// Why policies are read again.
enum class ReloadReason {
    asked,   ///< by a person: what was released is taken up again
    saved,   ///< files were saved: policies that are unchanged stay released
    overlay, ///< texts beside the files have changed: what was released stays so
};

/// A verb of a behaviour.
struct Order {
    std::string verb;
    std::vector<std::string> arguments;
    uid_t user = 0;
    Answer answer;
};

/// The questions and orders for a running daemon, whatever carries the question. Long answers are JSON texts
/// whose keys affinityctl-json(5) documents. Names, command lines, executables, ports and other findings
/// about a process are owned by its user; who may change something, and how often a user may ask, is for the
/// caller to check.
///
/// No command works for longer than a slice of the loop: what takes more goes on later and answers then.
class Commands {
  public:
    virtual ~Commands() = default;
    virtual void status(OwnedAnswer answer) = 0;
    /// Says what a pass would do now; nothing is changed.
    virtual void plan(OwnedAnswer answer) = 0;
    /// Everything about one PID, TID, interface or IRQ number, and why.
    virtual void explain(const std::string& subject, OwnedAnswer answer) = 0;
    /// The measurements kept, of one kind or ("") of all, and how the latest compare with those before. An
    /// Error for a kind that does not exist.
    [[nodiscard]] virtual Result<std::string> history(const std::string& kind) = 0;
    /// The folders of policies, and processes under policy: no work, for completions.
    [[nodiscard]] virtual Result<std::string> names() = 0;
    /// Carries out a verb of a behaviour. An Error: the daemon was built without it.
    virtual void run(Order order) = 0;
    // These answer what they did, by policy (status::to_text).
    /// Reads the policies again, which is waited for in any case: an Error names each fault. Done: the pass
    /// that follows is over.
    virtual void reload(Answer answer, Until until, ReloadReason reason) = 0;
    /// Puts back what a policy (by name), a process (by PID) or everything ("") was given. The release lasts
    /// until the next `apply` or reload. `user`: who asks, for the log.
    virtual void release(const std::string& what, uid_t user, Answer answer, Until until) = 0;
    /// A full pass that also takes up what was released or is in backoff. Done: it is over.
    virtual void apply(Answer answer, Until until) = 0;
};

/// A thread's wish for itself. The kernel says which process sends it; `tid` and `own_pid` are
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

enum class JoinOutcome : int {
    done = 1,
    no_daemon = 0,         ///< it is ending, or not yet ready: as if there were none
    not_yours = -EPERM,    ///< the thread is none of the sender's
    no_policy = -ESRCH,    ///< no policy wants the process
    not_allowed = -EACCES, ///< its policy does not let it join that
    released = -ECANCELED, ///< its policy, or itself, was let go by hand
    put_off = -EBUSY,      ///< it has joined, but cannot be placed now: `explain` says why
    no_slot = -ENXIO,      ///< it has no slot of its own, or none of its slots has that CPU
    crowded = -EUSERS,     ///< the slot with that CPU has more than its share of the work
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

} // namespace affinityd::core
