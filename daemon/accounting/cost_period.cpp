// SPDX-License-Identifier: Apache-2.0
#include "accounting/cost_period.hpp"

#include "accounting/past_costs.hpp"

#include <algorithm>

namespace affinityd::accounting {

double CostPeriod::bytes() const {
    double sum = 0;
    for (const auto& [nic, carried] : nics_)
        sum += carried.bytes;
    return sum;
}

void CostPeriod::add(const NicTraffic::Totals& totals, double now) {
    for (auto& [nic, carried] : nics_) {
        const auto total = totals.find(nic);
        if (total == totals.end()) continue;
        // A total that fell belongs to an interface that left and came back: it counts from now.
        if (total->second.bytes > carried.last.bytes) {
            carried.bytes += static_cast<double>(total->second.bytes - carried.last.bytes);
            softirq_seconds_ += std::max(0.0, total->second.softirq_seconds - carried.last.softirq_seconds);
        }
        carried.last = total->second;
    }
    until_ = now;
}

void CostPeriod::set(const CostSubject& subject, const NicTraffic::Totals& totals) {
    text_hash_ = subject.text_hash;
    model_ = to_string(subject.model);
    for (const auto& nic : subject.nics) {
        const auto total = totals.find(nic);
        nics_.try_emplace(nic, Carried{total == totals.end() ? NicTraffic::Total{} : total->second, 0});
    }
}

void CostPeriod::restart(std::uint64_t ticks, double now) {
    ledger_.restart(ticks);
    nics_.clear();
    since_ = now;
    until_ = now;
    softirq_seconds_ = 0;
}

std::vector<std::string> CostPeriod::nics() const {
    std::vector<std::string> names;
    for (const auto& [nic, carried] : nics_)
        names.push_back(nic);
    return names;
}

PolicyCost CostPeriod::cost(const std::string& policy) const {
    PolicyCost cost;
    cost.policy = policy;
    cost.model = model_;
    cost.seconds = std::max(0.0, until_ - since_);
    for (const auto& [nic, carried] : nics_)
        cost.nics.push_back({nic, carried.bytes, false});
    cost.bytes = bytes();
    cost.cpu_seconds = ledger_.total();
    cost.softirq_seconds = softirq_seconds_;
    return cost;
}

PastCost CostPeriod::past(std::int64_t time) const {
    return {time, text_hash_, bytes(), ledger_.total(), model_};
}

std::vector<state::MeasurementRecord> CostPeriod::records(const std::string& policy,
                                                          std::int64_t time) const {
    std::vector<state::MeasurementRecord> records;
    const double all = bytes();
    for (const auto& [nic, carried] : nics_) {
        if (carried.bytes <= 0) continue;
        state::MeasurementRecord record;
        record.time = time;
        record.kind = "passive";
        record.outcome = "done";
        record.path = nic;
        record.model = model_;
        record.policies = policy;
        record.seconds = until_ - since_;
        record.bytes = static_cast<std::uint64_t>(carried.bytes);
        record.bits_per_second = record.seconds > 0 ? carried.bytes * 8 / record.seconds : 0;
        record.cpu_seconds = ledger_.total() * carried.bytes / all;
        record.detail = cost_detail(text_hash_);
        records.push_back(std::move(record));
    }
    return records;
}

} // namespace affinityd::accounting
