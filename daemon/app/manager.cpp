// SPDX-License-Identifier: Apache-2.0
#include "app/manager.hpp"

#include "app/json.hpp"
#include "app/notices.hpp"
#include "app/report_json.hpp"
#include "base/text.hpp"
#include "host/root.hpp"
#include "inventory/scan.hpp"
#include "planner/check.hpp"
#include "policy/folders.hpp"

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <iterator>

#include <fmt/format.h>

namespace affinityd::app {

Manager::Manager(Parts parts)
    : parts_(std::move(parts)), executor_(parts_.journal, parts_.enforcer, parts_.log),
      queue_care_(executor_, parts_.log),
      other_writers_(parts_.root,
                     {parts_.settings.runtime_dir, parts_.settings.irqbalance_dir, parts_.enforcer.acts()}),
      sources_(parts_.root), peers_(parts_.root, parts_.settings.runtime_dir),
      measurements_(parts_.settings.dry_run ? "" : parts_.settings.state_dir), costs_(parts_.root),
      nic_usage_(parts_.root) {
    costs_.recall(measurements_.kept("passive"));
    tell_notices();
}

std::string Manager::cgroup_folder() const {
    return std::filesystem::path(parts_.root.path()) / "sys/fs/cgroup";
}

void Manager::measured(const accounting::MeasuringRun& run) {
    measurements_.add(run, world_->policies());
    tell_notices();
}

std::string Manager::history(const std::string& kind) const {
    return dump(to_json(measurements_.history(kind)));
}

void Manager::tell_notices() {
    for (const auto& notice : measurements_.take_notices())
        tell(parts_.log, notice);
    for (const auto& notice : other_writers_.take_notices())
        tell(parts_.log, notice);
}

Manager::~Manager() = default;

Result<std::unique_ptr<World>> Manager::load(std::string& diagnostics) const {
    const auto documents = policy::read_folders(parts_.settings.policy_folders);
    if (!documents) return std::unexpected(documents.error());
    auto machine = read_machine(parts_.root);
    if (!machine) return std::unexpected(machine.error());
    auto read = policy::read_policies(*documents);
    auto& findings = read.diagnostics;
    std::ranges::move(planner::check_on_machine(read.set, machine->topology, machine->nics),
                      std::back_inserter(findings));
    policy::add_source_lines(findings, *documents);
    policy::sort_by_place(findings);
    for (const auto& finding : findings)
        diagnostics += policy::to_string(finding, true) + "\n";
    if (!read.ok()) return fail("the policies have errors");
    return std::make_unique<World>(std::move(read.set), std::move(*machine));
}

void Manager::adopt(std::unique_ptr<World> world) {
    // Seats and known processes are named by policy: those of policies that are still there stay where they
    // are.
    std::map<std::string, std::size_t, std::less<>> index;
    for (std::size_t i = 0; i < world->policies().policies.size(); ++i)
        index.emplace(world->policies().policies[i].name, i);
    if (world_) {
        for (const auto& policy : world_->policies().policies)
            if (!index.contains(policy.name)) assignments_.forget_policy(policy.name);
        for (auto& [pid, process] : tasks_.processes()) {
            const auto now = index.find(world_->policies().policies[process.policy].name);
            process.policy = now == index.end() ? world->policies().policies.size() : now->second;
        }
        // A process whose policy has gone is looked at once more, as one that nobody wants.
        std::erase_if(tasks_.processes(),
                      [&](auto& entry) { return entry.second.policy == world->policies().policies.size(); });
        world->update(planner::Serving(world_->serving()));
    }
    world_ = std::move(world);
    units_.clear(); // they name policies by their place in the old set
    unit_problems_.clear();
    released_.clear();
    loaded_at_ = std::chrono::system_clock::now();
    for (const auto& problem : world_->placements().problems)
        parts_.log.warn(fmt::format("policy {}: {}: {}", problem.policy, problem.subject, problem.message));
}

void Manager::see_costs() {
    costs_.begin_pass();
    for (const auto& [pid, process] : tasks_.processes())
        costs_.see(process.id, world_->policies().policies[process.policy].name);
}

void Manager::keep(std::vector<state::MeasurementRecord> records) {
    for (auto& record : records)
        measurements_.keep(std::move(record));
    tell_notices();
}

Result<void> Manager::start() {
    std::string diagnostics;
    auto world = load(diagnostics);
    if (!world) {
        auto error = world.error();
        if (!diagnostics.empty()) error.message += "\n" + diagnostics;
        return std::unexpected(std::move(error));
    }
    if (!diagnostics.empty()) parts_.log.warn("policies:\n" + diagnostics);
    adopt(std::move(*world));
    parts_.log.info(fmt::format(
        "{} policies, {} CPUs online ({}), {} interfaces, {} subjects in the undo journal",
        world_->policies().policies.size(), world_->machine().topology.online.count(),
        world_->machine().topology.online.to_list(), world_->machine().nics.size(), parts_.journal.size()));
    return {};
}

Result<std::string> Manager::reload() {
    std::string diagnostics;
    auto world = load(diagnostics);
    if (!world) {
        auto error = world.error();
        if (!diagnostics.empty()) error.message += "\n" + diagnostics;
        parts_.log.refuse("reload: " + error.to_string() + (diagnostics.empty() ? ": " : "") +
                          "the running policies stay");
        return std::unexpected(std::move(error));
    }
    adopt(std::move(*world));
    parts_.log.info(fmt::format("reloaded: {} policies", world_->policies().policies.size()));
    begin_reconcile(false);
    return diagnostics;
}

void Manager::apply() {
    released_.clear();
    queue_care_.forget();
    other_writers_.look_again();
    for (auto& [pid, process] : tasks_.processes())
        for (auto& [tid, thread] : process.threads)
            thread.truce = {};
    begin_reconcile(true);
}

Result<std::string> Manager::release(const std::string& what) {
    const auto pid = parse_number<int>(what);
    const bool is_policy =
        std::ranges::any_of(world_->policies().policies, [&](const auto& p) { return p.name == what; });
    if (!what.empty() && !is_policy && !(pid && tasks_.find(*pid) != nullptr))
        return fail("neither a policy nor a process under policy", what);
    released_.insert(what.empty() ? "*" : what);
    std::size_t count = 0;
    for (const auto& entry : parts_.journal.entries()) {
        const auto* task = std::get_if<planner::TaskMask>(&entry.subject);
        const bool meant = what.empty() || entry.held.policy == what ||
                           (pid && !is_policy && task != nullptr && task->pid == *pid);
        if (meant && executor_.restore(entry, world_->placements().online)) ++count;
    }
    begin_reconcile(false);
    return fmt::format("{} subjects put back", count);
}

bool Manager::keeps_on_stop(std::string_view name) const {
    if (!world_) return false;
    const auto& policies = world_->policies().policies;
    const auto found = std::ranges::find(policies, name, &policy::Policy::name);
    return found != policies.end() && found->on_stop == policy::OnStop::keep;
}

void Manager::stop() {
    if (!parts_.enforcer.acts()) return;
    if (world_) {
        see_costs();
        auto terms = cost_terms();
        terms.policies.clear(); // closes all
        settle_costs(std::move(terms));
    }
    std::size_t count = 0;
    std::vector<planner::Subject> kept;
    for (const auto& entry : parts_.journal.entries()) {
        if (keeps_on_stop(entry.held.policy))
            kept.push_back(entry.subject);
        else if (executor_.restore(entry, world_ ? world_->placements().online : CpuSet{}))
            ++count;
    }
    if (world_) count += put_back_newborns();
    other_writers_.stop();
    talk_to_irqbalance();
    tell_notices();
    for (const auto& subject : kept)
        if (const auto done = parts_.journal.forget(subject); !done)
            parts_.log.error(done.error().to_string());
    parts_.log.info(fmt::format("{} subjects put back as they were", count));
}

std::size_t Manager::put_back_newborns() {
    constexpr unsigned most_rounds = 16; // newborns of newborns; what was put back gives no mask on
    std::size_t count = 0;
    for (unsigned round = 0, before = 1; round < most_rounds && before != count; ++round) {
        before = static_cast<unsigned>(count);
        for (const int pid : inventory::list_pids(parts_.root).value_or(std::vector<int>{})) {
            const auto head = inventory::read_head(parts_.root, pid, nullptr);
            if (!head || head->is_kernel() || !parts_.journal.is_giver(pid, head->facts->parent())) continue;
            for (const auto& thread : inventory::read_threads(parts_.root, pid)) {
                const planner::TaskMask task{thread.id, pid, thread.comm};
                const int creator = thread.id == head->id ? head->facts->parent() : pid;
                const auto held =
                    executor_.inherited(task, thread.allowed, creator, world_->placements().online);
                if (held && !keeps_on_stop(held->policy) &&
                    executor_.put_back_newborn(task, thread.allowed, *held))
                    ++count;
            }
        }
    }
    return count;
}

void Manager::count(std::size_t& processes, std::size_t& threads) const {
    processes = tasks_.processes().size();
    threads = 0;
    for (const auto& [pid, process] : tasks_.processes())
        threads += process.threads.size();
}

void Manager::events_lost() {
    ++lost_;
    parts_.log.warn("the kernel's process events overflowed: everything is looked at again");
    begin_reconcile(false);
}

} // namespace affinityd::app
