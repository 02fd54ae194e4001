// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "host/root.hpp"
#include "inventory/facts.hpp"
#include "inventory/task.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::inventory {

struct StatLine;

/// The scan of one process begins with one read of /proc/PID/stat, which is all that a matcher needs, and
/// goes on, in slices, for a caller that wants the threads. The main thread comes from that first line:
/// /proc/PID/task/PID/stat is never read.
class ProcessScan {
  public:
    /// Reads the stat line. No value: the process is gone, or has ended and awaits collection. An Error: the
    /// file is there and cannot be read (EMFILE, EACCES), so the state of the process is unknown.
    /// `root` and `sources` (may be null) must outlive the scan and its facts.
    static Result<std::optional<ProcessScan>> open(const host::Root& root, int pid,
                                                   FactSources* sources = nullptr);
    ProcessScan(ProcessScan&&) noexcept;
    ProcessScan& operator=(ProcessScan&&) noexcept;
    ~ProcessScan();

    [[nodiscard]] TaskId id() const { return id_; } ///< of the main thread; its tid is the process id
    [[nodiscard]] const std::string& comm() const { return facts_->comm(); } ///< main thread's name
    [[nodiscard]] unsigned flags() const { return flags_; }                  ///< PF_ bits of the main thread
    [[nodiscard]] bool is_kernel() const { return (flags_ & pf_kthread) != 0; }
    [[nodiscard]] int parent() const { return facts_->parent(); } ///< process id, 0 if none
    [[nodiscard]] int session() const { return session_; } ///< getsid(2); 0 or less: none that we can see
    [[nodiscard]] const ProcessFacts& facts() const { return *facts_; }
    [[nodiscard]] const std::shared_ptr<ProcessFacts>& shared_facts() const { return facts_; }

    /// Reads threads and their masks until no new thread shows, at most 16 times around, so that a process
    /// that makes threads faster than they can be read does not hold the scan. True: finished. Asks
    /// `out_of_time` after every thread. The kernel's count of the stat line decides whether the thread list
    /// is looked at: a second thread born after open() is announced by its own event.
    bool step(const std::function<bool()>& out_of_time);

    /// The threads of a finished scan: the main thread first, then ascending by id; threads that have ended
    /// are left out. An Error: the list could not be read to its end.
    Result<std::vector<Thread>> take_threads();

  private:
    struct Threads;
    ProcessScan(const host::Root& root, const StatLine& line, std::shared_ptr<ProcessFacts> facts);
    [[nodiscard]] Result<void> begin_threads();
    [[nodiscard]] Result<void> read_next();

    const host::Root* root_;
    TaskId id_;
    unsigned flags_;
    int session_;
    long count_; ///< threads by the stat line
    bool is_leader_dead_;
    std::shared_ptr<ProcessFacts> facts_;
    std::unique_ptr<Threads> threads_; ///< made by the first step: most processes never need it
};

} // namespace affinityd::inventory
