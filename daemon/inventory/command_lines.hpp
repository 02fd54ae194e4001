// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"
#include "host/fd.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

namespace affinityd::inventory {

/// Reads /proc/PID/cmdline on a thread of its own, because the read waits for the lock of the process's
/// memory map, and a process can have that held for good: one of its pages lies on a file system in user
/// space that does not answer. The caller waits for a few milliseconds, and for some time not again for this
/// process; an answer that comes later is kept for the next look. A thread that gets no answer is left to
/// itself, and so is the last one at the end.
class CommandLines {
  public:
    using Clock = std::chrono::steady_clock;
    /// Threads that wait: when there are so many, of one user or of all, nothing is read for that user, or
    /// for anybody, until one of them has come back.
    static constexpr std::size_t most_waiting_for_one = 2, most_waiting = 16;
    /// Whose process it is; asked only where it matters.
    using User = std::function<uid_t()>;

    explicit CommandLines(Clock::duration patience = std::chrono::milliseconds(3));
    CommandLines(const CommandLines&) = delete;
    CommandLines& operator=(const CommandLines&) = delete;
    ~CommandLines();

    struct Answer {
        int code = 0; ///< errno of the read; EAGAIN: there is no answer yet
        std::string text;
    };
    /// The answer that came late; EAGAIN: a thread waits for one still, or too many threads wait. No value:
    /// read() it.
    [[nodiscard]] std::optional<Answer> find(const TaskId& process, const User& user,
                                             Clock::time_point now = Clock::now());
    /// Reads `file`, at most `limit` bytes. EMFILE: no thread is to be had.
    [[nodiscard]] Answer read(const TaskId& process, host::Fd file, std::size_t limit, const User& user);

    /// Readable when an answer has come that nobody waited for any more.
    [[nodiscard]] int fd() const;
    struct Late {
        std::vector<TaskId> processes; ///< whose answers have come since the last call: look at them again
        bool has_room = false;         ///< and at others: some could not be asked, and now can
    };
    [[nodiscard]] Late take_late();
    /// Processes for which a thread has waited for a second or more, ascending.
    [[nodiscard]] std::vector<TaskId> silent(Clock::time_point now = Clock::now()) const;
    /// Those of them that have not been told here before.
    [[nodiscard]] std::vector<TaskId> take_silent(Clock::time_point now = Clock::now());
    /// Users for whom nothing is read, as some of their processes have been silent for a second or more,
    /// ascending; no value: for no user is anything read.
    [[nodiscard]] std::optional<std::vector<uid_t>> refused(Clock::time_point now = Clock::now()) const;

  private:
    struct Arrivals;
    struct Reader;
    struct Pause {
        Clock::duration length{};
        Clock::time_point until;
    };
    struct LateAnswer {
        Answer answer;
        Clock::time_point came;
    };
    [[nodiscard]] bool start();
    [[nodiscard]] std::size_t count_waiting(uid_t user) const;
    [[nodiscard]] bool is_paused(const TaskId& process, Clock::time_point now) const;
    void pause(const TaskId& process, Clock::time_point now);

    Clock::duration patience_;
    std::shared_ptr<Arrivals> arrivals_;
    std::shared_ptr<Reader> reader_;               ///< that takes the next question; null: none yet
    std::vector<std::shared_ptr<Reader>> waiting_; ///< that got no answer in time
    std::unordered_map<TaskId, Pause> pauses_;     ///< in which nobody waits for the process
    std::unordered_map<TaskId, LateAnswer> late_;  ///< few: what nobody has asked for goes with the next ones
    bool was_full_ = false;                        ///< somebody could not be asked for want of threads
};

} // namespace affinityd::inventory
