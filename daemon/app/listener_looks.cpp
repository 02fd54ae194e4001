// SPDX-License-Identifier: Apache-2.0
#include "app/listener_looks.hpp"

#include <fmt/format.h>

namespace affinityd::app {

bool ListenerLooks::step(const OutOfTime& out_of_time) {
    while (next_ < pids_.size()) {
        tasks_.process_changed(pids_[next_++], {.has_changed = false});
        if (out_of_time()) break;
    }
    return next_ == pids_.size();
}

std::vector<planner::Problem> listener_problems(const inventory::ListenerList* list) {
    if (list == nullptr) return {};
    std::vector<planner::Problem> problems;
    if (list->is_truncated())
        problems.push_back({{},
                            "listen",
                            fmt::format("more than {} sockets listen on ports of policies: of those beyond "
                                        "that number it is not known (ss -ltunp lists them all)",
                                        inventory::ListenerList::most_listeners)});
    if (const auto fault = list->fault())
        problems.push_back({{}, "listen", "who listens cannot be read: " + fault->to_string()});
    return problems;
}

} // namespace affinityd::app
