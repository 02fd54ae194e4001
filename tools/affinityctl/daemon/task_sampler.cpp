// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/daemon/task_sampler.hpp"

#include "affinityctl/daemon/members.hpp"
#include "inventory/process_files.hpp"

#include <algorithm>
#include <utility>

namespace affinityctl {

namespace inventory = affinityd::inventory;

void TaskSampler::count_since(TaskRow& row, const inventory::RunRecord& record,
                              std::chrono::steady_clock::time_point now) const {
    const auto before = before_.find(row.tid);
    if (before == before_.end() || before->second.record.start_time != record.start_time) return;
    const auto& [old, at] = before->second;
    const double seconds = std::max(std::chrono::duration<double>(now - at).count(), 1e-6);
    const auto rate = [seconds](std::uint64_t last, std::uint64_t first) {
        return std::max(0.0, static_cast<double>(last) - static_cast<double>(first)) / seconds;
    };
    row.share = rate(record.run_ns, old.run_ns) / 1e9;
    if (record.migrations && old.migrations) row.migrations = rate(*record.migrations, *old.migrations);
}

std::vector<TaskRow> TaskSampler::sample(const nlohmann::json& status, const std::string& policy) {
    std::vector<TaskRow> rows;
    std::map<int, Sample> samples;
    for (const auto& process : list(status, "processes")) {
        if (!policy.empty() && text(process, "policy") != policy) continue;
        const int pid = process.value("pid", 0);
        for (const auto& thread : list(process, "threads")) {
            const int tid = thread.value("tid", 0);
            const auto record = inventory::read_run_record(*root_, pid, tid);
            const auto now = std::chrono::steady_clock::now();
            auto mask = inventory::read_allowed(*root_, pid, tid);
            if (!record || !mask) continue;
            TaskRow row{.pid = pid,
                        .tid = tid,
                        .comm = text(thread, "comm"),
                        .policy = text(process, "policy"),
                        .state = text(thread, "state"),
                        .cpu = record->cpu,
                        .mask = std::move(*mask),
                        .wanted = cpus(thread, "wanted"),
                        .share = {},
                        .migrations = {}};
            count_since(row, *record, now);
            rows.push_back(std::move(row));
            samples.emplace(tid, Sample{*record, now});
        }
    }
    before_ = std::move(samples);
    return rows;
}

} // namespace affinityctl
