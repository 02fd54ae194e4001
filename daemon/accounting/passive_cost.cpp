// SPDX-License-Identifier: Apache-2.0
#include "accounting/passive_cost.hpp"

#include "accounting/cpu_time.hpp"
#include "base/clock.hpp"
#include "host/boot_clock.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace affinityd::accounting {

CostPeriod& PassiveCost::period(const std::string& policy) {
    const auto found = periods_.find(policy);
    if (found != periods_.end()) return found->second;
    return periods_.emplace(policy, CostPeriod(host::ticks_since_boot(), monotonic_seconds())).first->second;
}

void PassiveCost::begin_pass() {
    settlement_.reset();
    for (auto& [name, period] : periods_)
        period.ledger().begin_look();
}

void PassiveCost::see(const TaskId& id, const std::string& policy, bool ending) {
    const auto entry = read_cpu_time(root_, id);
    if (!entry) return;
    auto& ledger = period(policy).ledger();
    if (ending)
        ledger.note(*entry);
    else
        ledger.see(*entry);
}

void PassiveCost::begin_settling(Terms terms) {
    settlement_ = Settlement{};
    settlement_->now = terms.now;
    for (auto& policy : terms.policies) {
        auto name = policy.policy;
        settlement_->subjects.emplace(std::move(name), std::move(policy));
    }
    traffic_.begin(std::move(terms.nics));
}

void PassiveCost::list_periods(Settlement& settlement) {
    for (const auto& [name, subject] : settlement.subjects)
        period(name);
    for (const auto& [name, period] : periods_)
        settlement.left.push_back(name);
    std::ranges::reverse(settlement.left); // they are taken from the end
    settlement.is_traffic_read = true;
}

bool PassiveCost::settle(Settlement& settlement, const std::string& policy,
                         const std::function<bool()>& out_of_time) {
    const auto at = periods_.find(policy);
    if (at == periods_.end()) return true;
    auto& period = at->second;
    if (!period.ledger().finish_look(out_of_time)) return false;
    const double now = monotonic_seconds();
    const bool is_new = period.is_new();
    period.add(traffic_.totals(), now);
    const auto subject = settlement.subjects.find(policy);
    if (subject == settlement.subjects.end()) {
        close(policy, period, settlement.now);
        periods_.erase(at);
        return true;
    }
    if (!is_new && period.text_hash() != subject->second.text_hash) {
        close(policy, period, settlement.now);
        period.restart(host::ticks_since_boot(), now);
    }
    period.set(subject->second, traffic_.totals());
    return true;
}

bool PassiveCost::settle(const std::function<bool()>& out_of_time) {
    if (!settlement_) return true;
    if (!settlement_->is_traffic_read) {
        if (!traffic_.step(out_of_time)) return false;
        list_periods(*settlement_);
    }
    auto& left = settlement_->left;
    while (!left.empty()) {
        if (!settle(*settlement_, left.back(), out_of_time)) return false;
        left.pop_back();
        if (out_of_time() && !left.empty()) return false;
    }
    settlement_.reset();
    return true;
}

void PassiveCost::close(const std::string& policy, const CostPeriod& period, std::int64_t now) {
    auto past = period.past(now);
    if (past.bytes < least_bytes) return;
    past_.remember(policy, std::move(past));
    auto records = period.records(policy, now);
    closed_.insert(closed_.end(), std::make_move_iterator(records.begin()),
                   std::make_move_iterator(records.end()));
}

PassiveCost::Records PassiveCost::take_closed() { return std::exchange(closed_, {}); }

CostReport PassiveCost::report() const {
    std::map<std::string, unsigned> sharers;
    for (const auto& [name, period] : periods_)
        for (const auto& nic : period.nics())
            ++sharers[nic];
    CostReport report;
    for (const auto& [name, period] : periods_) {
        auto cost = period.cost(name);
        if (cost.nics.empty()) continue;
        for (auto& nic : cost.nics)
            nic.shared = sharers[nic.nic] > 1;
        if (const auto* past = past_.before(name, period.text_hash())) cost.before = *past;
        report.push_back(std::move(cost));
    }
    return report;
}

} // namespace affinityd::accounting
