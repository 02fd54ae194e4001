// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/client/task_rows.hpp"

#include "affinityctl/present/document.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace affinityctl {

namespace inventory = affinityd::inventory;
using nlohmann::json;

namespace {

std::string shown_cpu(const json& row) {
    return text_of(row, "cpu") + (row.value("astray", false) ? "!" : "");
}

std::string shown_share(const json& row) {
    return row["share"].is_number() ? fmt::format("{:.1f}%", row["share"].get<double>() * 100) : "-";
}

std::string shown_moves(const json& row) {
    const auto& moves = row["migrations_per_second"];
    return moves.is_number() ? fmt::format("{:.1f}", moves.get<double>()) : "-";
}

// clang-format off
constexpr Field row_fields[] = {
    {"pid", "PID", "count", "the process"},
    {"tid", "TID", "count", "the thread"},
    {"comm", "NAME", "text", "its name"},
    {"policy", "POLICY", "text", "its policy"},
    {"cpu", "", "count", "where it runs or ran last"},
    {"", "ON CPU", "text", "", {}, shown_cpu},
    {"mask", "MASK", "cpus", "its CPUs, from the kernel"},
    {"wanted", "", "cpus", "the CPUs that its policy wants"},
    {"astray", "", "flag", "it runs outside of these"},
    {"share", "", "number?", "of one CPU since the last sample, 0 to 1"},
    {"", "SHARE", "text", "", {}, shown_share},
    {"migrations_per_second", "", "number?", "moves between CPUs per second"},
    {"", "MIGR/S", "text", "", {}, shown_moves},
    {"state", "STATE", "text", "as in status"},
};
// clang-format on

} // namespace

const Fields watch_fields = row_fields;

void sort_rows(json& rows, const std::string& order, bool reversed) {
    const bool is_figure = order == "share" || order == "migrations";
    const auto key = is_figure && order == "migrations" ? "migrations_per_second"
                     : order == "name"                  ? "comm"
                                                        : order;
    const auto comes_before = [&](const json& a, const json& b) {
        if (is_figure) return (b[key].is_null() ? json(0) : b[key]) < (a[key].is_null() ? json(0) : a[key]);
        return a[key] < b[key];
    };
    auto& list = rows.get_ref<json::array_t&>();
    std::ranges::sort(list, {}, [](const json& row) { return row["tid"].get<int>(); });
    std::ranges::stable_sort(list, [&](const json& a, const json& b) {
        return reversed ? comes_before(b, a) : comes_before(a, b);
    });
}

json TaskSampler::sample(const json& status, const std::string& policy) {
    auto rows = json::array();
    std::map<int, Sample> samples;
    for (const auto& process : list(status, "processes")) {
        if (!policy.empty() && text(process, "policy") != policy) continue;
        const int pid = process.value("pid", 0);
        for (const auto& thread : list(process, "threads")) {
            const int tid = thread.value("tid", 0);
            const auto record = inventory::read_run_record(*root_, pid, tid);
            const auto now = std::chrono::steady_clock::now();
            const auto mask = inventory::read_allowed(*root_, pid, tid);
            if (!record || !mask) continue;
            json share, migrations;
            if (const auto before = before_.find(tid);
                before != before_.end() && before->second.record.start_time == record->start_time) {
                const auto& [old, at] = before->second;
                const double seconds = std::max(std::chrono::duration<double>(now - at).count(), 1e-6);
                const auto rate = [seconds](std::uint64_t last, std::uint64_t first) {
                    return last > first ? static_cast<double>(last - first) / seconds : 0;
                };
                share = rate(record->run_ns, old.run_ns) / 1e9;
                if (record->migrations && old.migrations)
                    migrations = rate(*record->migrations, *old.migrations);
            }
            const auto wanted = cpus(thread, "wanted");
            rows.push_back(
                affinityctl::record(row_fields, {pid, tid, text(thread, "comm"), text(process, "policy"),
                                                 record->cpu, mask->to_list(), wanted.to_list(),
                                                 is_astray(static_cast<unsigned>(record->cpu), *mask, wanted,
                                                           share.is_null() ? 0 : share.get<double>()),
                                                 share, migrations, text(thread, "state")}));
            samples.emplace(tid, Sample{*record, now});
        }
    }
    before_ = std::move(samples);
    return rows;
}

bool is_astray(unsigned cpu, const affinityd::CpuSet& mask, const affinityd::CpuSet& wanted, double share) {
    return share > 0 && mask.contains(cpu) && !wanted.empty() && !wanted.contains(cpu);
}

} // namespace affinityctl
