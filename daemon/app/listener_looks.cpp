// SPDX-License-Identifier: Apache-2.0
#include "app/listener_looks.hpp"

#include <fmt/format.h>

namespace affinityd::app {

namespace {

constexpr auto list_sockets = "ss -ltunp";

} // namespace

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
    const auto lack = list->lack();
    for (const auto user : lack.crowded)
        problems.push_back({{},
                            "listen",
                            fmt::format("user {} has more than {} sockets that listen on ports of policies: "
                                        "who listens with the others is not known",
                                        user, list->limits().of_user),
                            list_sockets});
    for (const auto& [table, user] : lack.unread)
        problems.push_back(
            {{},
             "listen",
             fmt::format("so many sockets listen on ports of policies, most of them user {}'s, that the list "
                         "of {} is read in part only: who was known to listen before counts on, others may "
                         "not be seen",
                         user, table),
             list_sockets});
    if (const auto fault = list->fault())
        problems.push_back({{}, "listen", "who listens cannot be read: " + fault->to_string()});
    return problems;
}

} // namespace affinityd::app
