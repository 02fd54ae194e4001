// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/cpu_load.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace affinityd::planner {

/// How well the tasks under policy are placed.
struct Goodness {
    Weight busiest = 0;       ///< load of the busiest core
    Weight least = 0;         ///< no placement that the policies allow has a busiest core below this
    std::size_t off_node = 0; ///< tasks that are not on the node of the interfaces that their policy names
    std::size_t paired = 0;   ///< tasks that share a core although one that they might have is free
    std::size_t moves = 0;    ///< tasks that the last re-deal moved
    /// Tasks with work enough for more than one core, on one; another one is free for one of them.
    struct Shared {
        std::vector<std::string> policies; ///< of the tasks, one each
        unsigned core = 0, free = 0;       ///< the first CPUs of both
    };
    std::optional<Shared> shared{};       ///< the first such core; no value: there is none
    [[nodiscard]] double balance() const; ///< least / busiest, 0..1; 1 without any load
};

/// One line on what could be better: "redis and nginx share the core of CPU 2 while that of CPU 3 is idle";
/// "": nothing could.
[[nodiscard]] std::string to_string(const Goodness& goodness);

/// Work that may be anywhere in a set of cores.
struct Confined {
    CpuSet cpus;                ///< of all slots that it could have
    std::vector<Weight> pieces; ///< what each task puts on a single core, wherever it is
    Weight total = 0;
};

/// A lower bound for the load of the busiest core, by counting: work that is confined to some cores has to be
/// done there, and of n tasks on m cores some core has n/m, rounded up. Tasks whose weights differ by less
/// than half a percent count as the least of them.
class LeastBusiest {
  public:
    /// `fixed`: work that cannot be moved.
    LeastBusiest(std::vector<Confined> work, CpuLoad fixed);
    /// Goes on until the time is over. True: value() is the bound.
    bool step(const std::function<bool()>& out_of_time);
    [[nodiscard]] Weight value() const { return least_; }

  private:
    struct Alike {
        std::size_t count = 0;
        Weight least = 0;
    };
    void begin_set();
    void add(const Confined& confined);
    void end_set();

    std::vector<Confined> work_;
    CpuLoad fixed_;
    std::vector<CpuSet> sets_;  ///< of CPUs that are still to be looked at: what is confined to these
    std::size_t next_ = 0;      ///< of the work, for the set
    std::size_t cores_ = 0;     ///< of the set
    Weight total_ = 0;          ///< work in the set
    std::vector<Alike> pieces_; ///< in the set, by weight
    Weight least_ = 0;
};

} // namespace affinityd::planner
