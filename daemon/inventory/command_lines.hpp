// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"
#include "host/fd.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace affinityd::inventory {

/// Reads /proc/PID/cmdline on a thread, because the read waits for the lock of the process's memory map, and
/// a process can have that held for good: one of its pages lies on a file system in user space that does not
/// answer. The caller waits for three milliseconds; an answer that comes later is kept for the next read. A
/// thread that gets no answer is left to itself: two for the processes of one user, 16 in all. When there are
/// so many, nothing is read for that user, or for all, until one of them has come back.
class CommandLines {
  public:
    using Clock = std::chrono::steady_clock;
    explicit CommandLines(Clock::duration patience = std::chrono::milliseconds(3));
    CommandLines(const CommandLines&) = delete;
    CommandLines& operator=(const CommandLines&) = delete;
    ~CommandLines();

    struct Answer {
        int code = 0; ///< errno of the read; EAGAIN: there is no answer yet; EMFILE: no thread is to be had
        std::string text;
    };
    /// Reads `file`, at most `limit` bytes. `user`: who pays for a thread that is left to itself.
    [[nodiscard]] Answer read(const TaskId& process, host::Fd file, std::size_t limit, uid_t user);

    /// Readable when an answer has come late.
    [[nodiscard]] int fd() const;
    /// The processes whose answers have come late since the last call: look at them again.
    [[nodiscard]] std::vector<TaskId> take_late();
    /// True: since the last call a process was not asked because all threads were waiting for others.
    [[nodiscard]] bool take_refused() { return std::exchange(has_refused_, false); }
    /// Processes that have not answered for a second or more, ascending.
    [[nodiscard]] std::vector<TaskId> silent(Clock::time_point now = Clock::now()) const;

  private:
    struct Reader;
    [[nodiscard]] bool start();
    [[nodiscard]] bool is_asked(const TaskId& process) const;
    [[nodiscard]] bool has_room(uid_t user) const;

    Clock::duration patience_;
    std::shared_ptr<const host::Fd> arrived_;
    std::shared_ptr<Reader> reader_;               ///< the one that takes the next question; null: none yet
    std::vector<std::shared_ptr<Reader>> waiting_; ///< those that got no answer in time
    std::unordered_map<TaskId, Answer> late_;      ///< those of one call of take_late()
    bool has_refused_ = false;
};

} // namespace affinityd::inventory
