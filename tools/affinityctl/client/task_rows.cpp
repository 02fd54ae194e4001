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

const Fields watch_fields = row_fields;

json watch_json(const std::vector<TaskRow>& rows) {
    json list = json::array();
    for (const auto& row : rows)
        list.push_back(record(row_fields, {row.pid, row.tid, row.comm, row.policy, row.cpu,
                                           row.mask.to_list(), row.wanted.to_list(), row.is_astray(),
                                           or_null(row.share), or_null(row.migrations), row.state}));
    return list;
}

bool TaskRow::is_astray() const {
    // A thread that sleeps since its mask was changed is still counted on its old CPU: it moves as it wakes.
    // The kernel runs no thread outside its mask.
    const bool has_run = share.value_or(0) > 0 && mask.contains(static_cast<unsigned>(cpu));
    return has_run && !wanted.empty() && !wanted.contains(static_cast<unsigned>(cpu));
}

void sort_rows(std::vector<TaskRow>& rows, RowOrder order, bool reversed) {
    std::ranges::sort(rows, {}, &TaskRow::tid);
    std::ranges::stable_sort(rows, [&](const TaskRow& a, const TaskRow& b) {
        return reversed ? comes_before(b, a, order) : comes_before(a, b, order);
    });
}

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

bool WatchView::press(Key key, std::size_t rows, std::size_t lines) {
    top_ = top(rows, lines);
    const std::size_t page = std::max<std::size_t>(lines, 1);
    switch (key) {
    case Key::quit:
        return false;
    case Key::up:
        top_ -= top_ > 0 ? 1 : 0;
        break;
    case Key::down:
        ++top_;
        break;
    case Key::page_up:
        top_ -= std::min(top_, page);
        break;
    case Key::page_down:
        top_ += page;
        break;
    case Key::home:
        top_ = 0;
        break;
    case Key::end:
        top_ = rows;
        break;
    case Key::next_order:
        order_ = static_cast<RowOrder>((static_cast<std::size_t>(order_) + 1) % std::size(row_orders));
        break;
    case Key::reverse:
        reversed_ = !reversed_;
        break;
    case Key::pause:
        paused_ = !paused_;
        break;
    case Key::none:
        break;
    }
    return true;
}

std::size_t WatchView::top(std::size_t rows, std::size_t lines) const {
    return std::min(top_, rows > lines ? rows - lines : 0);
}

} // namespace affinityctl
