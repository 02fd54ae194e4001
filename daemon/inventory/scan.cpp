// SPDX-License-Identifier: Apache-2.0
#include "inventory/scan.hpp"

#include "base/text.hpp"
#include "inventory/pid_stream.hpp"
#include "inventory/stat_file.hpp"
#include "inventory/task_reader.hpp"

#include <algorithm>

namespace affinityd::inventory {

namespace {

std::string task_folder(int pid, int tid) {
    return std::to_string(pid) + "/task/" + std::to_string(tid) + "/";
}

/// Small recordings hold a process's own files only; there the main thread is read from them.
std::string task_or_process(const host::Root& root, int pid, int tid) {
    if (!root.is_live() && pid == tid && !root.proc().exists(task_folder(pid, tid)))
        return std::to_string(pid) + "/";
    return task_folder(pid, tid);
}

} // namespace

Result<std::vector<int>> list_pids(const host::Root& root) {
    auto stream = PidStream::open(root);
    if (!stream) return std::unexpected(stream.error());
    std::vector<int> pids;
    while (true) {
        const auto pid = stream->next();
        if (!pid) return std::unexpected(pid.error());
        if (!*pid) break;
        pids.push_back(**pid);
    }
    std::ranges::sort(pids);
    return pids;
}

std::optional<Process> read_process(const host::Root& root, int pid, FactSources* sources) {
    TaskReader reader(root, pid, sources);
    while (!reader.step([] { return false; })) {
    }
    return reader.take();
}

std::optional<Thread> read_thread(const host::Root& root, int pid, int tid) {
    StatBuffer buffer;
    const auto line =
        read_stat(root.proc(), task_or_process(root, pid, tid) + "stat", buffer).value_or(std::nullopt);
    if (!line || line->id != tid || line->is_dead()) return std::nullopt;
    return make_thread(root, pid, *line);
}

std::optional<CpuSet> read_allowed(const host::Root& root, int pid, int tid) {
    const auto text = root.proc().read(task_or_process(root, pid, tid) + "status", 64U << 10);
    if (!text || !*text) return std::nullopt;
    constexpr std::string_view key = "\nCpus_allowed_list:";
    const auto at = (*text)->find(key);
    if (at == std::string::npos) return std::nullopt;
    std::string_view value = std::string_view(**text).substr(at + key.size());
    auto set = CpuSet::parse_list(value.substr(0, value.find('\n')));
    return set ? std::optional(std::move(*set)) : std::nullopt;
}

struct Scan::Progress {
    const host::Root* root;
    FactSources* sources;
    std::optional<NumberedEntries> pids;
    std::optional<TaskReader> current;
};

Scan::Scan(const host::Root& root, FactSources* sources)
    : progress_(std::make_unique<Progress>(Progress{&root, sources, {}, {}})) {
    if (auto pids = NumberedEntries::open(root.proc(), "")) progress_->pids = std::move(*pids);
}

Scan::Scan(Scan&&) noexcept = default;
Scan& Scan::operator=(Scan&&) noexcept = default;
Scan::~Scan() = default;

bool Scan::step(const std::function<bool()>& out_of_time, const std::function<void(Process&&)>& sink) {
    auto& [root, sources, pids, current] = *progress_;
    while (pids) {
        if (!current) {
            const auto pid = pids->next().value_or(std::nullopt);
            if (!pid) {
                pids.reset();
                break;
            }
            if (*pid > 0) current.emplace(*root, *pid, sources);
            continue;
        }
        if (!current->step(out_of_time)) return false;
        if (auto process = current->take()) sink(std::move(*process));
        current.reset();
        if (out_of_time()) return false;
    }
    return true;
}

} // namespace affinityd::inventory
