// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/assignments.hpp"
#include "planner/placements.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace affinityd::planner {

/// A core that has a quarter more work than the mean of the cores that its tasks may use, and one of its
/// tasks that may have a core with less.
struct Crowding {
    unsigned core = 0, free = 0; ///< the first CPU of each
    Weight load = 0, free_load = 0;
    TaskId task;
    std::string policy;
    TaskId mate; ///< the busiest other task on the core; {}: there are interrupts only
    std::string mate_policy;
    unsigned table = 0, from = 0; ///< with the slot to go to, for Assignments::move()
    Slot to;
    bool is_by_mask = false; ///< false: the task's mask has all of these cores, and the kernel chooses one
};

/// "nginx and redis share the core of CPU 2 while that of CPU 3 is idle".
[[nodiscard]] std::string to_string(const Crowding& crowding);

/// The busiest core first; of each core its lightest tasks first that are not idle. Each counts where it
/// would go when the next is looked for. A process stays in its group. `stays`: the task is where its packets
/// arrive; it moves only from a core with more work than it can do to an idle one. Pure.
[[nodiscard]] std::vector<Crowding> crowdings(const Placements& placements, const Assignments& assignments,
                                              const std::function<bool(const TaskId&)>& stays = {});

/// Relieves cores that were crowded in three looks running; at once where another core is idle and they have
/// more work than they can do.
class Relief {
  public:
    /// To be called each time that the tasks were weighed; those of the crowdings that are to move now.
    [[nodiscard]] std::vector<Crowding> look(const std::vector<Crowding>& found);

  private:
    std::map<unsigned, unsigned> looks_; ///< by core, in a row
};

} // namespace affinityd::planner
