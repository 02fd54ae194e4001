// SPDX-License-Identifier: Apache-2.0
#include "behaviours/list.hpp"
#include "behaviours/memory/memory_mover.hpp"
#include "inventory/process_files.hpp"

#include <optional>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace affinityd::behaviours {

namespace {

/// Sends the memory of processes under `memory: follow` to the NUMA nodes that they now run on; spreads it
/// over these under `memory: interleave`, and once more when there is an eighth more of it.
class Memory final : public Behaviour {
  public:
    explicit Memory(Shared& shared) : shared_(shared) {
        if (shared.acts()) mover_.emplace(shared.root);
    }
    void placed(const KnownProcess& process) override;
    void dropped(const TaskId& process) override { states_.erase(process); }
    Slices end_pass() override;
    void describe(const KnownProcess& process, status::ProcessStatus& into) const override {
        const auto found = states_.find(process.id);
        if (found == states_.end()) return;
        into.memory_nodes = found->second.nodes;
        into.memory_state = found->second.text;
    }

  private:
    struct State {
        std::vector<unsigned> nodes; ///< where its memory was last sent
        std::string text;            ///< the result, for people
        std::uint64_t resident = 0;  ///< bytes that it had then, if it is interleaved
    };
    Shared& shared_;
    std::optional<MemoryMover> mover_; ///< none in a dry run
    std::unordered_map<TaskId, State> states_;
};

void Memory::placed(const KnownProcess& process) {
    const auto& nodes = shared_.current->machine().topology.nodes;
    const auto wanted = shared_.current->policy(process.policy).memory;
    if (wanted == policy::Memory::stay || nodes.size() < 2) return;
    CpuSet cpus;
    for (const auto& thread : process.threads)
        cpus |= thread.present;
    MemoryMove move{process.id, {}, {}, wanted == policy::Memory::interleave};
    const auto resident =
        move.is_interleaved ? inventory::read_resident(shared_.root, process.id.tid).value_or(0) : 0;
    for (const auto& node : nodes)
        (node.cpus.intersects(cpus) ? move.to : move.from).push_back(node.id);
    auto& state = states_[process.id];
    if (move.to == state.nodes && resident <= state.resident + state.resident / 8) return;
    state = {move.to, "waits", resident};
    // The memory of one that may run everywhere is left where it is: there is no better place.
    if (move.to.empty() || (move.is_interleaved ? move.to.size() < 2 : move.from.empty()))
        state.text = "stays";
    else if (mover_)
        mover_->ask(std::move(move));
}

Slices Memory::end_pass() {
    if (!mover_) co_return;
    for (const auto& [move, code, left, took_ms] : mover_->take_done()) {
        const auto found = states_.find(move.process);
        if (found == states_.end()) continue;
        auto& text = found->second.text;
        const auto* done = move.is_interleaved ? "spread" : "moved";
        text = code == 0 ? fmt::format("{} in {} ms, {} pages stayed", done, took_ms, left)
                         : fmt::format("not {}: {}", done, std::generic_category().message(code));
        if (code != 0)
            shared_.log.warn(fmt::format("memory of process {}: {}", move.process.tid, text),
                             "memory not moved");
    }
}

} // namespace

void add_memory(Daemon& daemon, const Bus&) { daemon.add(std::make_unique<Memory>(daemon.shared())); }

} // namespace affinityd::behaviours
