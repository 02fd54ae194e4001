// SPDX-License-Identifier: Apache-2.0
#include "accounting/nic_usage.hpp"
#include "accounting/passive_cost.hpp"
#include "behaviours/list.hpp"
#include "planner/lanes.hpp"

#include <chrono>
#include <ctime>
#include <memory>
#include <ranges>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace affinityd::behaviours {

namespace {

/// Which interface serves which process, and what its traffic costs: accounting's parts of a pass.
class Costs final : public Behaviour {
  public:
    explicit Costs(Daemon& daemon)
        : daemon_(daemon), shared_(daemon.shared()), current_(shared_.current), tasks_(daemon.tasks()),
          usage_(shared_.root), costs_(shared_.root) {
        costs_.recall(shared_.history.kept("passive"));
    }
    Slices after_tasks() override;
    Slices end_pass() override { return read(false); }
    Slices end() override { return read(true); }
    void count(const std::string& policy, Counters& into) override { into.bytes = costs_.bytes(policy); }
    void report(status::Overview& into) const override { into.costs = costs_.report(); }

  private:
    void begin_usage();
    void follow(const std::set<std::string>& moved);
    [[nodiscard]] std::vector<int> note(const accounting::NicUsageResult& result);
    [[nodiscard]] planner::NicUsage count_readers() const;
    [[nodiscard]] Slices read(bool at_end);

    Daemon& daemon_;
    Shared& shared_;
    const Current& current_;
    Tasks& tasks_;
    accounting::NicUsage usage_;
    accounting::PassiveCost costs_;
    std::set<std::string> moved_; ///< into containers, as at the last look
};

/// Finds out which interface serves which process. Where placements depend on that and are others now, tasks
/// move with the lanes given out anew.
Slices Costs::after_tasks() {
    begin_usage();
    while (!usage_.step(a_part))
        co_yield pause;
    if (auto others = note(usage_.result()); !others.empty())
        shared_.work.add(tasks_.look_at(std::move(others)));
}

void Costs::begin_usage() {
    const auto& world = *current_.world;
    accounting::NicUsage::Request request{world.machine().nics, {}, {}};
    const planner::Interfaces interfaces(world.machine());
    for (const auto& policy : world.policies().policies) {
        const bool places =
            policy.model == policy::Model::full || policy.model == policy::Model::irq || policy.model_auto;
        accounting::UsagePolicy asked{
            .name = policy.name, .is_auto = policy.nics_auto, .is_sampled = !places};
        if (places && !policy.nics_auto) asked.named = interfaces.of(policy, {});
        request.policies.push_back(std::move(asked));
    }
    for (const auto& [pid, process] : tasks_.table().processes()) {
        const auto& asked = request.policies[process.policy];
        if (!asked.is_auto && asked.is_sampled) continue;
        request.processes.push_back({process.id, process.policy, process.takes_none});
    }
    request.now =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now().time_since_epoch());
    usage_.begin(std::move(request));
}

/// NICs that are in containers belong to the machine from now on. No event tells that these are up there, and
/// have interrupts.
void Costs::follow(const std::set<std::string>& moved) {
    if (moved == moved_) return;
    moved_ = moved;
    auto machine = current_->machine();
    machine.moved.insert(moved.begin(), moved.end());
    current_->update(std::move(machine));
    daemon_.begin_pass(true);
}

/// The processes that may have another place now: those whose interfaces are others, or all of them where
/// lanes are given out anew.
std::vector<int> Costs::note(const accounting::NicUsageResult& result) {
    std::vector<int> others;
    if (!current_->needs_nic_usage()) {
        // A policy of the same name that comes later has other tasks.
        if (!current_->usage().empty()) current_->update(planner::NicUsage{});
        for (auto& [pid, process] : tasks_.table().processes()) {
            process.nics.clear();
            process.are_nics_known = process.is_elsewhere = process.reads_nothing = false;
            process.way.clear();
            process.lost.clear();
        }
        return others;
    }
    if (result.fault) { // counts that are incomplete must not distribute lanes anew
        shared_.log.warn("NIC usage is not known: " + result.fault->to_string(), "nic usage");
        return others;
    }
    follow(result.moved);
    for (auto& [pid, process] : tasks_.table().processes())
        if (const auto found = result.processes.find(process.id); found != result.processes.end()) {
            if (process.nics != found->second.nics || process.are_nics_known != found->second.is_known ||
                process.reads_nothing == found->second.is_served)
                others.push_back(pid);
            process.nics = found->second.nics;
            process.are_nics_known = found->second.is_known;
            process.is_elsewhere = found->second.is_elsewhere;
            process.way = found->second.way;
            process.ends = found->second.ends;
            process.lost = found->second.lost;
            process.reads_nothing = !found->second.is_served;
        }
    auto readers = count_readers();
    if (readers == current_->usage()) return others;
    current_->update(std::move(readers));
    shared_.want_pass();
    const auto known = tasks_.table().processes() | std::views::keys;
    return {known.begin(), known.end()};
}

planner::NicUsage Costs::count_readers() const {
    const auto& world = *current_.world;
    const planner::Interfaces interfaces(world.machine());
    planner::NicUsage readers;
    for (const auto& [pid, process] : tasks_.table().processes()) {
        const auto& policy = world.policy(process.policy);
        const bool has_lanes =
            policy.model == policy::Model::full || policy.model == policy::Model::irq || policy.model_auto;
        if (!has_lanes || process.reads_nothing || process.is_elsewhere) continue;
        auto& ends = readers.ends[policy.name];
        ends.insert(process.ends.begin(), process.ends.end());
        planner::ReadingProcess reading{.nics = process.are_nics_known ? &process.nics : nullptr,
                                        .cpuset = process.cpuset.cpus ? &*process.cpuset.cpus : nullptr,
                                        .rules = {}};
        for (unsigned index = 0; const auto& thread : process.threads)
            reading.rules.push_back(planner::rule_of(policy, thread.comm, index++, thread.joined.get()));
        planner::count_readers(policy, interfaces, reading, readers);
    }
    return readers;
}

/// Adds up what the traffic of the pass has cost. `at_end`: the daemon ends, so all periods are closed.
Slices Costs::read(bool at_end) {
    const auto& world = *current_.world;
    planner::NicUsage sampled;
    for (const auto& [policy, counts] : usage_.result().sampled)
        for (const auto& [nics, processes] : counts)
            sampled[policy][planner::Readers(nics)] = processes;
    const planner::Interfaces interfaces(world.machine());
    const auto& groups = tasks_.groups();
    std::vector<accounting::CostSubject> subjects;
    if (!at_end)
        for (const auto& policy : world.policies().policies)
            subjects.push_back(
                {policy.name, policy.text_hash, policy.model,
                 interfaces.of(policy, sampled.contains(policy.name) ? sampled : world.usage()),
                 groups.contains(policy.name) ? groups.at(policy.name) : std::set<std::string>()});
    costs_.begin(std::move(subjects), std::time(nullptr));
    while (!costs_.step(a_part))
        co_yield pause;
    for (auto& record : costs_.take_closed())
        shared_.keep(std::move(record));
}

} // namespace

void add_costs(Daemon& daemon, const Bus&) { daemon.add(std::make_unique<Costs>(daemon)); }

} // namespace affinityd::behaviours
