// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "planner/goodness.hpp"
#include "planner/seating.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace affinityd::planner {

/// Finds out how well tasks are seated, in small steps.
class Measurement {
  public:
    /// Goes on until the time is over; always with the same seating, which is complete. True: it is done.
    bool step(const Seating& seating, const std::function<bool()>& out_of_time);
    [[nodiscard]] bool is_done() const { return is_done_; }
    [[nodiscard]] const Goodness& goodness() const { return goodness_; }

  private:
    /// What is in the slots of one kind.
    struct Content {
        Confined* confined;
        struct Sum {
            Weight weight = 0;
            std::size_t tasks = 0;
        };
        std::vector<Sum> slots;
    };
    void begin(const Seating::Kind& kind);
    void add(const Seating::Item& item);
    void add(const Seating::Kind& kind, const CpuLoad& load);
    void add_paired(const Seating::Kind& kind, const CpuLoad& load);
    void find_shared(const Seating& seating);
    void count_by_sets(const Seating& seating);

    std::vector<Content> contents_;               ///< by the number of the kind
    std::map<CpuSet, Confined> sets_;             ///< by what confines it
    std::size_t items_ = 0, kinds_ = 0;           ///< that were counted
    std::optional<CpuLoad> fixed_;                ///< what is left without the tasks that were counted
    std::map<unsigned, std::set<unsigned>> busy_; ///< CPUs by core
    std::set<unsigned> avoidable_;                ///< cores with tasks that might be on cores of their own
    std::optional<LeastBusiest> least_;
    Goodness goodness_;
    bool is_done_ = false;
};

} // namespace affinityd::planner
