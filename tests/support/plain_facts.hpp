// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inventory/task.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace affinityd::inventory {

/// Facts as plain values. Missing ones are empty.
struct PlainFacts : ProcessFacts {
    TaskId task;
    int ppid = 0;
    bool kernel = false;
    std::string comm_text, exe_text, cmdline_text, cgroup_text = "/", user_text, group_text;
    unsigned user_id = 0, group_id = 0;
    std::vector<std::uint16_t> ports;

    [[nodiscard]] TaskId id() const override { return task; }
    [[nodiscard]] int parent() const override { return ppid; }
    [[nodiscard]] bool is_kernel() const override { return kernel; }
    [[nodiscard]] const std::string& comm() const override { return comm_text; }
    [[nodiscard]] const std::string& exe() const override { return exe_text; }
    [[nodiscard]] const std::string& cmdline() const override { return cmdline_text; }
    [[nodiscard]] const std::string& cgroup() const override { return cgroup_text; }
    [[nodiscard]] unsigned uid() const override { return user_id; }
    [[nodiscard]] unsigned gid() const override { return group_id; }
    [[nodiscard]] const std::string& user() const override { return user_text; }
    [[nodiscard]] const std::string& group() const override { return group_text; }
    [[nodiscard]] const std::vector<std::uint16_t>& listen_ports() const override { return ports; }
};

} // namespace affinityd::inventory
