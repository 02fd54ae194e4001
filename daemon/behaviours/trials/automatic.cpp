// SPDX-License-Identifier: Apache-2.0
// `affinity: auto`: which trial runs, and what came of those before.
#include "base/clock.hpp"
#include "base/text.hpp"
#include "behaviours/trials/effects.hpp"
#include "planner/lanes.hpp"
#include "status/json.hpp"

#include <algorithm>
#include <ctime>
#include <utility>

#include <fmt/format.h>

namespace affinityd::behaviours {

namespace {

constexpr double shortest_look = 5, hour_of_traffic = 3600; ///< seconds
constexpr double least_bytes_of_round = 4e6;                ///< before a trial begins
constexpr std::int64_t between_tries = 3600;                ///< seconds

const policy::Policy* find_auto(const World& world, const std::string& name) {
    const auto found = std::ranges::find(world.policies().policies, name, &policy::Policy::name);
    return found == world.policies().policies.end() || !found->model_auto ? nullptr : &*found;
}

} // namespace

Automatic::Automatic(Shared& shared, Effects& effects) : shared_(shared), effects_(effects) {
    for (const auto& record : shared_.history.kept("auto"))
        if (auto choice = status::read_choice(record))
            chosen_.insert_or_assign(record.policies, std::move(*choice));
}

World::Choices Automatic::choices(const World& world) {
    World::Choices choices;
    for (const auto& [name, choice] : chosen_)
        choices.emplace(name, choice.candidate);
    const auto* policy = trial_ ? find_auto(world, tried_) : nullptr;
    if (trial_ && (policy == nullptr || policy->text_hash != text_hash_)) trial_.reset();
    if (trial_) choices.insert_or_assign(tried_, trial_->present());
    return choices;
}

/// The lines of interrupts that interfaces of the policy have, by name: part of what a choice rests on.
std::string Automatic::queues_of(const policy::Policy& policy) const {
    const auto& machine = shared_.current->machine();
    std::string text;
    for (const auto& nic : planner::Interfaces(machine).of(policy, shared_.current->usage())) {
        const auto vectors = machine.vectors_of(nic);
        const auto queues =
            std::ranges::count_if(vectors, [](const auto& one) { return one.queue.has_value(); });
        if (queues > 0) text += fmt::format("{} {} ", nic, queues);
    }
    return text;
}

std::vector<planner::AutoCandidate> Automatic::candidates(const policy::Policy& policy) const {
    using policy::Model;
    using policy::Steer;
    std::vector<planner::AutoCandidate> found{{}, {Model::process, Steer::none}};
    if (queues_of(policy).empty()) return found;
    found.push_back({Model::full, Steer::none});
    const auto steer = shared_.current->steer_of(policy);
    const bool can_steer = !shared_.current->machine().unsteered.contains(policy.name) ||
                           steer == Steer::tasks || steer == Steer::flows;
    if (steer != Steer::none && can_steer) found.push_back({Model::full, Steer::automatic});
    return found;
}

planner::ChoiceBasis Automatic::basis_of(const policy::Policy& policy, double bytes_per_second) const {
    const auto& machine = shared_.current->machine();
    return {policy.text_hash, fnv1a_64(machine.topology.online.to_list() + " " + queues_of(policy)),
            bytes_per_second};
}

void Automatic::end_pass(bool may_begin) {
    auto& world = *shared_.current.world;
    if (!shared_.acts()) return;
    if (trial_ && (!may_begin || shared_.releases.policy(tried_))) {
        trial_.reset();
        last_try_[tried_] = std::time(nullptr);
        world.use_choices(choices(world));
    }
    std::erase_if(traffic_, [&](const auto& one) { return find_auto(world, one.first) == nullptr; });
    for (const auto& policy : world.policies().policies) {
        if (!policy.model_auto) continue;
        const auto recent = traffic_of(policy.name);
        if (!recent || trial_ || !may_begin || shared_.releases.policy(policy.name)) continue;
        if (*recent * round() >= least_bytes_of_round && is_due(policy)) begin(policy);
    }
}

/// Bytes per second since the last look at it; no value: that was a moment ago, or there was none.
std::optional<double> Automatic::traffic_of(const std::string& policy) {
    const auto bytes = shared_.counters(policy).bytes;
    if (!bytes) return std::nullopt;
    const double now = monotonic_seconds();
    const auto [at, is_new] = traffic_.try_emplace(policy, Traffic{*bytes, *bytes, now, now, {}});
    auto& seen = at->second;
    if (*bytes < seen.bytes) seen = {*bytes, *bytes, now, now, seen.per_second}; // counted anew
    if (is_new || now - seen.time < shortest_look) return std::nullopt;
    const double recent = (*bytes - seen.bytes) / (now - seen.time);
    seen.bytes = *bytes;
    seen.time = now;
    if (now - seen.hour >= hour_of_traffic) {
        seen.per_second = (*bytes - seen.hour_bytes) / (now - seen.hour);
        seen.hour_bytes = *bytes;
        seen.hour = now;
    }
    return recent;
}

bool Automatic::is_due(const policy::Policy& policy) const {
    const auto now = static_cast<std::int64_t>(std::time(nullptr));
    if (const auto last = last_try_.find(policy.name);
        last != last_try_.end() && now - last->second < between_tries)
        return false;
    const auto choice = chosen_.find(policy.name);
    if (choice == chosen_.end()) return true;
    const auto& hour = traffic_.at(policy.name).per_second;
    return planner::is_due(choice->second,
                           basis_of(policy, hour.value_or(choice->second.basis.bytes_per_second)), now);
}

double Automatic::round() const { return static_cast<double>(shared_.settings.auto_round.count()); }

void Automatic::begin(const policy::Policy& policy) {
    const auto all = candidates(policy);
    const auto choice = chosen_.find(policy.name);
    const auto before = choice == chosen_.end() ? planner::AutoCandidate{} : choice->second.candidate;
    shared_.log.info(fmt::format("policy {}: affinity: auto begins to try {} ways", policy.name, all.size()));
    tried_ = policy.name;
    text_hash_ = policy.text_hash;
    trial_.emplace(all, std::ranges::count(all, before) > 0 ? before : planner::AutoCandidate{}, round());
    follow();
}

/// The next pass puts the present candidate in force. Drops the counts from before it.
void Automatic::follow() {
    shared_.current->use_choices(choices(*shared_.current.world));
    const auto& policies = shared_.current->policies().policies;
    const auto found = std::ranges::find(policies, tried_, &policy::Policy::name);
    static_cast<void>(effects_.look(static_cast<std::size_t>(found - policies.begin()), true));
    shared_.want_pass();
}

void Automatic::tick() {
    const auto* policy = trial_ ? find_auto(*shared_.current.world, tried_) : nullptr;
    if (policy == nullptr) return;
    const auto before = trial_->present();
    const auto index = static_cast<std::size_t>(policy - shared_.current->policies().policies.data());
    trial_->add(effects_.look(index, trial_->is_settling()));
    if (trial_->end())
        finish(*policy);
    else if (trial_->present() != before)
        follow();
}

void Automatic::finish(const policy::Policy& policy) {
    const auto end = *trial_->end();
    const auto name = policy.name;
    const auto now = static_cast<std::int64_t>(std::time(nullptr));
    last_try_[name] = now;
    shared_.log.info(fmt::format("policy {}: affinity: auto {} {}: {}", name,
                                 end.is_decided ? "chose" : "stays with", to_string(end.choice), end.why));
    if (end.is_decided) {
        const auto before = chosen_.find(name);
        const bool is_same = before != chosen_.end() && before->second.candidate == end.choice;
        planner::AutoChoice choice{end.choice, end.why, now, is_same ? before->second.confirmed + 1 : 0,
                                   basis_of(policy, trial_->bytes_per_second())};
        shared_.keep(status::record_of(name, choice));
        chosen_.insert_or_assign(name, std::move(choice));
    }
    trial_.reset();
    shared_.current->use_choices(choices(*shared_.current.world));
    shared_.want_pass();
}

std::string Automatic::state(const policy::Policy& policy) const {
    if (!policy.model_auto) return {};
    if (trial_ && policy.name == tried_) // not which one it tries now: others could burden that one
        return fmt::format("tries {} ways: {} rounds are over, and all are compared after {} of each",
                           trial_->candidates(), trial_->rounds(), trial_->next_look());
    const auto choice = chosen_.find(policy.name);
    if (choice != chosen_.end())
        return fmt::format("chose {}: {}", to_string(choice->second.candidate), choice->second.why);
    return trial_ ? "waits for the trial of policy " + tried_ : "waits for traffic";
}

} // namespace affinityd::behaviours
