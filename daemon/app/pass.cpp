// SPDX-License-Identifier: Apache-2.0
// The manager's full pass: all tasks in slices, then the queues, then what has gone.
#include "app/manager.hpp"
#include "inventory/head.hpp"
#include "inventory/scan.hpp"

#include <algorithm>
#include <ctime>
#include <set>

#include <fmt/format.h>
#include <poll.h>

namespace affinityd::app {

void Manager::begin_reconcile(bool machine_changed) {
    if (!world_) return;
    if (machine_changed) {
        if (auto machine = read_machine(parts_.root))
            world_->update(std::move(*machine));
        else
            parts_.log.error("the machine could not be read again, going on with what is known: " +
                             machine.error().to_string());
    }
    auto pids = inventory::PidStream::open(parts_.root);
    if (!pids) {
        parts_.log.error("the processes could not be listed: " + pids.error().to_string());
        return;
    }
    sources_.refresh();
    is_adopted_ = true;
    // A fresh number in any case: what an unfinished pass saw is seen again.
    is_after_change_ = is_after_change_ || std::exchange(told_of_change_, false);
    reconcile_ = std::make_unique<Reconcile>(Reconcile{.pids = std::move(*pids), .number = ++reconciles_});
    costs_.begin_pass();
    other_writers_.begin_pass();
    peers_.begin_pass();
    waits_(Urgency::now);
}

bool Manager::reconcile_step(const std::function<bool()>& out_of_time) {
    if (!reconcile_) return true;
    auto& turn = reconcile_->turn;
    do {
        if (!turn) {
            const auto pid = reconcile_->pids.next().value_or(std::nullopt);
            if (!pid) {
                finish_reconcile();
                return true;
            }
            auto head = inventory::read_head(parts_.root, *pid, &sources_);
            if (!head) continue;
            if (!head->is_kernel()) {
                other_writers_.see(*pid, head->comm);
                peers_.see(*pid, head->comm);
            }
            turn = begin_turn(std::move(*head));
        }
        if (!turn || !go_on(*turn, out_of_time)) continue;
        if (const auto* known = tasks_.find(turn->head.id.tid))
            costs_.see(known->id, world_->policies().policies[known->policy].name);
        turn.reset();
    } while (!out_of_time());
    return false;
}

void Manager::finish_reconcile() {
    reconcile_.reset();
    if (expects_changes()) queue_care_.expect_changes();
    is_after_change_ = false;
    forget_gone();
    parts_.journal.age_givers();
    find_nic_usage();
    if (learn_serving()) waits_(Urgency::soon); // lanes are dealt anew: tasks move with them in the next pass
    std::set<unsigned> irqs;
    for (const auto& target : world_->placements().queues)
        if (const auto* irq = std::get_if<planner::IrqMask>(&target.subject)) irqs.insert(irq->irq);
    other_writers_.finish_pass(
        {irqs.begin(), irqs.end()}); // first, so that irqbalance is off what is moved next
    while (!other_writers_.step([] { return false; })) {
    }
    talk_to_irqbalance();
    tell_notices();
    handle_queues();
    adopt_lost_queues();
    handle_units();
    hear_of_memory();
    restore_unwanted_queues();
    settle_costs(cost_terms());
    look_for_peers();
}

void Manager::forget_gone() {
    std::vector<int> gone;
    for (const auto& [pid, process] : tasks_.processes())
        if (process.seen != reconciles_) gone.push_back(pid);
    for (const int pid : gone)
        drop(pid);
    // Tasks that ended while nobody looked, of processes that nobody wants any more. Those of processes under
    // policy have just been seen.
    for (const auto& [pid, threads] :
         parts_.journal.threads([&](int process) { return tasks_.find(process) == nullptr; }))
        forget_gone_threads(pid, threads);
}

/// Which NIC serves which process, for placement and for what is only shown.
void Manager::find_nic_usage() {
    accounting::NicUsage::Request request{world_->machine().nics, {}, {}};
    for (const auto& policy : world_->policies().policies) {
        const bool places = policy.model == policy::Model::full || policy.model == policy::Model::irq;
        request.policies.push_back({policy.name, policy.nics_auto,
                                    policy.nics_auto || !places
                                        ? std::vector<std::string>{}
                                        : planner::policy_nics(policy, world_->machine(), {}),
                                    !places});
    }
    for (const auto& [pid, process] : tasks_.processes()) {
        const auto& policy = world_->policies().policies[process.policy];
        const auto units = planner::deals_threads(policy.placement) ? process.threads.size() : 1;
        if (policy.nics_auto || !request.policies[process.policy].is_sampled)
            request.processes.push_back({process.id, process.policy, static_cast<unsigned>(units)});
    }
    nic_usage_.begin(std::move(request));
    while (!nic_usage_.step([] { return false; })) {
    }
}

bool Manager::learn_serving() {
    if (!world_->asks_for_serving()) return false;
    for (auto& [pid, process] : tasks_.processes())
        if (const auto found = nic_usage_.result().processes.find(process.id);
            found != nic_usage_.result().processes.end())
            process.nics = found->second;
    if (nic_usage_.result().fault || nic_usage_.result().counts == world_->serving()) return false;
    world_->update(planner::Serving(nic_usage_.result().counts));
    return true;
}

accounting::PassiveCost::Terms Manager::cost_terms() const {
    accounting::PassiveCost::Terms terms;
    terms.now = std::time(nullptr);
    const auto& used = nic_usage_.result().sampled;
    for (const auto& policy : world_->policies().policies)
        terms.policies.push_back(
            {policy.name, policy.text_hash, policy.model,
             planner::policy_nics(policy, world_->machine(),
                                  used.contains(policy.name) ? used : world_->serving())});
    for (const auto& nic : world_->machine().nics)
        terms.nics.push_back(nic.name);
    return terms;
}

void Manager::settle_costs(accounting::PassiveCost::Terms terms) {
    costs_.begin_settling(std::move(terms));
    while (!costs_.settle([] { return false; })) {
    }
    keep(costs_.take_closed());
}

void Manager::talk_to_irqbalance() {
    while (other_writers_.is_talking()) {
        pollfd waiting{other_writers_.fd(), POLLIN, 0};
        ::poll(&waiting, 1, 1000);
        other_writers_.handle();
    }
}

void Manager::handle_queues() {
    for (const auto& action : planner::plan_queues(world_->placements(), parts_.journal)) {
        if (!released_.empty() && (released_.contains("*") || released_.contains(action.policy))) continue;
        const auto applied = queue_care_.run(action, parts_.journal.find(action.subject),
                                             world_->placements(), world_->machine().topology);
        if (applied && enforcer::took_effect(applied->outcome)) queues_changed_ = true;
    }
    queue_care_.counted();
    // What was written is read back with the next look at the machine, not believed.
    if (std::exchange(queues_changed_, false))
        if (auto machine = read_machine(parts_.root)) world_->update(std::move(*machine));
}

void Manager::adopt_lost(const planner::Subject& subject, const CpuSet& present, const std::string& policy) {
    if (parts_.journal.find(subject) != nullptr) return;
    CpuSet original; // of steering maps: off
    if (std::holds_alternative<planner::TaskMask>(subject)) original = world_->machine().topology.possible;
    if (std::holds_alternative<planner::IrqMask>(subject)) {
        const auto text = parts_.root.proc().text("irq/default_smp_affinity");
        const auto mask = text ? CpuSet::parse_mask(*text) : std::unexpected(Error{"none", {}, 0});
        original = mask ? *mask : world_->machine().topology.online;
    }
    if (original == present) return;
    const auto done = parts_.journal.remember(subject, original, present, policy);
    if (done) {
        ++adopted_;
    } else {
        is_adopted_ = false;
        parts_.log.error(done.error().to_string());
    }
}

void Manager::adopt_lost_queues() {
    if (!parts_.journal.damaged()) return;
    for (const auto& target : world_->placements().queues)
        if (target.present == target.wanted) adopt_lost(target.subject, target.present, target.policy);
    if (!is_adopted_) return; // the next pass tries again
    parts_.log.warn(fmt::format(
        "the undo journal was damaged: {} subjects that it does not tell of are where policies want them, "
        "and get the kernel's defaults back one day",
        adopted_));
    if (const auto done = parts_.journal.mended(); !done) parts_.log.error(done.error().to_string());
}

void Manager::restore_unwanted_queues() {
    const auto& targets = world_->placements().queues;
    for (const auto& entry : parts_.journal.queues()) {
        const auto* unit = std::get_if<planner::UnitCpuset>(&entry.subject);
        const bool wanted = unit != nullptr ? units_.contains(unit->unit) && units_.at(unit->unit).keep
                                            : std::ranges::any_of(targets, [&](const auto& target) {
                                                  return target.subject == entry.subject;
                                              });
        if (!wanted) executor_.restore(entry, world_->placements().online);
    }
}

void Manager::look_for_peers() {
    if (!parts_.enforcer.acts()) return;
    peers_.finish_pass();
    while (!peers_.step(parts_.journal, [] { return false; })) {
    }
    constexpr std::size_t named = 3; // the rest is in `affinityctl status`
    for (const auto& [runtime_dir, shared] : peers_.list()) {
        for (std::size_t i = 0; i < std::min(named, shared.size()); ++i)
            parts_.log.warn(fmt::format("{} is claimed by the affinityd in {} too",
                                        planner::to_string(shared[i]), runtime_dir));
        if (shared.size() > named)
            parts_.log.warn(fmt::format("{} more are claimed by the affinityd in {} too",
                                        shared.size() - named, runtime_dir));
    }
}

} // namespace affinityd::app
