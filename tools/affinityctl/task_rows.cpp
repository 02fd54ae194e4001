// SPDX-License-Identifier: Apache-2.0
#include "task_rows.hpp"

#include "inventory/scan.hpp"

#include <algorithm>

namespace affinityctl {

namespace {

using affinityd::CpuSet;
using nlohmann::json;

CpuSet set_of(const json& thread, const char* key) {
    auto set = CpuSet::parse_list(thread.value(key, ""));
    return set ? std::move(*set) : CpuSet{};
}

bool comes_before(const TaskRow& a, const TaskRow& b, RowOrder order) {
    switch (order) {
    case RowOrder::share:
        return a.share.value_or(0) > b.share.value_or(0);
    case RowOrder::migrations:
        return a.migrations.value_or(0) > b.migrations.value_or(0);
    case RowOrder::cpu:
        return a.cpu < b.cpu;
    case RowOrder::pid:
        return a.pid < b.pid;
    case RowOrder::name:
        return a.comm < b.comm;
    }
    return false;
}

} // namespace

bool TaskRow::is_astray() const { return !wanted.empty() && !wanted.contains(static_cast<unsigned>(cpu)); }

void sort_rows(std::vector<TaskRow>& rows, RowOrder order, bool reversed) {
    std::ranges::sort(rows, {}, &TaskRow::tid);
    std::ranges::stable_sort(rows, [&](const TaskRow& a, const TaskRow& b) {
        return reversed ? comes_before(b, a, order) : comes_before(a, b, order);
    });
}

std::vector<TaskRow> TaskSampler::sample(const json& status, const std::string& policy) {
    std::vector<TaskRow> rows;
    std::map<int, Look> looks;
    for (const auto& process : status.value("processes", json::array())) {
        if (!policy.empty() && process.value("policy", "") != policy) continue;
        const int pid = process.value("pid", 0);
        for (const auto& thread : process.value("threads", json::array())) {
            const int tid = thread.value("tid", 0);
            const auto record = affinityd::inventory::read_run_record(*root_, pid, tid);
            const auto now = std::chrono::steady_clock::now();
            auto mask = affinityd::inventory::read_allowed(*root_, pid, tid);
            if (!record || !mask) continue;
            TaskRow row{.pid = pid,
                        .tid = tid,
                        .comm = thread.value("comm", ""),
                        .policy = process.value("policy", ""),
                        .state = thread.value("state", ""),
                        .cpu = record->cpu,
                        .mask = std::move(*mask),
                        .wanted = set_of(thread, "wanted"),
                        .share = {},
                        .migrations = {}};
            const auto before = before_.find(tid);
            if (before != before_.end() && before->second.record.start_time == record->start_time) {
                const auto& [old, at] = before->second;
                const double seconds = std::max(std::chrono::duration<double>(now - at).count(), 1e-6);
                row.share =
                    std::max(0.0, static_cast<double>(record->run_ns) - static_cast<double>(old.run_ns)) /
                    1e9 / seconds;
                if (record->migrations && old.migrations)
                    row.migrations = std::max(0.0, static_cast<double>(*record->migrations) -
                                                       static_cast<double>(*old.migrations)) /
                                     seconds;
            }
            rows.push_back(std::move(row));
            looks.emplace(tid, Look{*record, now});
        }
    }
    before_ = std::move(looks);
    return rows;
}

} // namespace affinityctl
