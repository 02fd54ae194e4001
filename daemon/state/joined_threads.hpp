// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "base/task_id.hpp"
#include "planner/joined.hpp"
#include "state/journal_file.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace affinityd::state {

/// Which threads have put themselves where: in memory, and in a file of the runtime folder, a line for each
/// change, written with one write(2) before it counts. So a daemon that was killed leaves it to the next one.
/// A file of an earlier boot, and lines that are torn, count for nothing: the threads of which they tell go
/// by their names again, and nothing that was changed depends on it. Bounded: `most` threads,
/// `most_of_process` of one process.
class JoinedThreads {
  public:
    static constexpr std::size_t most = 32'768, most_of_process = 4096;
    static constexpr std::size_t longest_file = 64 << 20; ///< bytes that are read

    /// `path` "": in memory only. An Error: the file cannot be read, and what was in it is not known, or it
    /// cannot be written; `into` works in memory until tidy() can write it.
    [[nodiscard]] static Result<void> open(const std::string& path, JoinedThreads& into);

    /// Null: it has asked for nothing.
    [[nodiscard]] const planner::Joined* find(const TaskId& thread) const;
    [[nodiscard]] std::size_t size() const { return threads_.size(); }
    /// Most of the file is history: tidy() is wanted.
    [[nodiscard]] bool is_bloated() const { return file_.is_bloated(); }
    /// False: one more thread of the process would be too many.
    [[nodiscard]] bool has_room(int pid) const;
    /// An Error: memory has it, the file does not.
    [[nodiscard]] Result<void> put(int pid, const TaskId& thread, planner::Joined joined);
    [[nodiscard]] Result<void> forget(const TaskId& thread);

    /// Forgets whom `is_there` does not know, and writes the file anew where most of it is history. False:
    /// out of time, call it again.
    [[nodiscard]] bool
    tidy(const std::function<bool(int pid, const TaskId&, const planner::Joined&)>& is_there,
         const std::function<bool()>& out_of_time);

  private:
    struct Entry {
        int pid = 0;
        planner::Joined joined;
    };
    [[nodiscard]] Result<void> append(const std::string& line);
    void take_line(std::string_view line);
    void set(const TaskId& thread, Entry entry);
    void erase(const TaskId& thread);
    [[nodiscard]] static std::string line_of(const TaskId& thread, const Entry& entry);
    [[nodiscard]] std::vector<TaskId> ids() const;

    JournalFile file_{""};
    std::unordered_map<TaskId, Entry> threads_;
    std::unordered_map<int, std::size_t> of_process_;
    std::optional<std::vector<TaskId>> doubtful_;  ///< of tidy(), to be looked at
    std::optional<std::vector<TaskId>> unwritten_; ///< of the rewrite that is under way
    bool is_behind_ = false; ///< lines could not be written: tidy() writes the file anew
};

} // namespace affinityd::state
