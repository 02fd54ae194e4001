// SPDX-License-Identifier: Apache-2.0
#include "app/silent_processes.hpp"

#include <fmt/format.h>

namespace affinityd::app {

namespace {

std::string silence_text(const TaskId& process) {
    return fmt::format(
        "the command line of pid {} cannot be read: its memory is on a file system that does not answer",
        process.tid);
}

} // namespace

void log_silent(inventory::CommandLines* lines, Log& log) {
    if (lines == nullptr) return;
    for (const auto& process : lines->take_silent())
        log.warn(silence_text(process), {"command line not read", process.tid});
}

std::vector<planner::Problem> silence_problems(const inventory::CommandLines* lines) {
    std::vector<planner::Problem> problems;
    if (lines == nullptr) return problems;
    for (const auto& process : lines->silent())
        problems.push_back({{},
                            fmt::format("process {}", process.tid),
                            silence_text(process),
                            fmt::format("ps -fp {}", process.tid)});
    const auto refused = lines->refused();
    if (!refused)
        problems.push_back(
            {{}, "cmdline", "no command line is read until one of these processes answers or ends"});
    for (const auto user : refused.value_or(std::vector<uid_t>{}))
        problems.push_back({{},
                            "cmdline",
                            fmt::format("no command line of processes of user {} is read until one of these "
                                        "processes answers or ends",
                                        user)});
    return problems;
}

} // namespace affinityd::app
