// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/task_id.hpp"
#include "host/fd.hpp"
#include "planner/action.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace affinityd::state {
class Journal;
}

namespace affinityd::coexist {

/// Reads another daemon's undo journal in slices and keeps what both daemons hold. The text is foreign: lines
/// that are torn or unknown are left out, at most 16 MiB are read.
class PeerJournal {
  public:
    explicit PeerJournal(host::Fd file) : file_(std::move(file)) {}

    /// Reads on until `out_of_time` says so. True: that was all.
    [[nodiscard]] bool step(const state::Journal& own, const std::function<bool()>& out_of_time);
    /// Subjects in both journals, tasks first, at most 1,000 of them.
    [[nodiscard]] std::vector<planner::Subject> take_shared();

  private:
    [[nodiscard]] bool fill();
    void take_line(const state::Journal& own, std::string_view line);

    host::Fd file_;
    std::string text_;     ///< read and not yet taken
    std::size_t at_ = 0;   ///< of text_: taken so far
    std::size_t read_ = 0; ///< bytes of the file
    std::unordered_map<TaskId, planner::TaskMask> tasks_;
    std::vector<planner::Subject> others_; ///< a machine has few of them
};

} // namespace affinityd::coexist
