// SPDX-License-Identifier: Apache-2.0
#include "app/memory.hpp"

#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace affinityd::app {

void MemoryFollower::follow(const KnownProcess& process) {
    const auto& nodes = shared_.current->machine().topology.nodes;
    if (shared_.current->policy(process.policy).memory != policy::Memory::follow || nodes.size() < 2) return;
    CpuSet cpus;
    for (const auto& thread : process.threads)
        cpus |= thread.present;
    enforcer::MemoryMove move{process.id, {}, {}};
    for (const auto& node : nodes)
        (node.cpus.intersects(cpus) ? move.to : move.from).push_back(node.id);
    auto& state = states_[process.id];
    if (move.to == state.nodes) return;
    state = {move.to, "waits"};
    // The memory of one that may run everywhere is left where it is: there is no better place.
    if (move.to.empty() || move.from.empty())
        state.text = "stays";
    else
        shared_.enforcer.move_memory(std::move(move));
}

void MemoryFollower::take_moved() {
    for (const auto& [move, code, left, took_ms] : shared_.enforcer.take_moved()) {
        const auto found = states_.find(move.process);
        if (found == states_.end()) continue;
        auto& text = found->second.text;
        text = code == 0 ? fmt::format("moved in {} ms, {} pages stayed", took_ms, left)
                         : "not moved: " + std::generic_category().message(code);
        if (code != 0)
            shared_.log.warn(fmt::format("memory of process {}: {}", move.process.tid, text),
                             "memory not moved");
    }
}

const MemoryFollower::State* MemoryFollower::find(const TaskId& process) const {
    const auto found = states_.find(process);
    return found == states_.end() ? nullptr : &found->second;
}

} // namespace affinityd::app
