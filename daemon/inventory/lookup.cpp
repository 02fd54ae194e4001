// SPDX-License-Identifier: Apache-2.0
#include "inventory/lookup.hpp"

#include "base/text.hpp"
#include "inventory/process_scan.hpp"
#include "inventory/stat_file.hpp"

#include <string>
#include <string_view>

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

/// What follows "\nKey:" in the status file of `path`, to the end of the line.
std::optional<std::string> read_status(const host::Root& root, const std::string& path,
                                       std::string_view key) {
    const auto text = root.proc().read(path + "status", 64U << 10);
    if (!text || !*text) return std::nullopt;
    const auto at = (*text)->find(key);
    if (at == std::string::npos) return std::nullopt;
    const std::string_view value = std::string_view(**text).substr(at + key.size());
    return std::string(trim_text(value.substr(0, value.find('\n'))));
}

} // namespace

Result<std::optional<Thread>> read_thread(const host::Root& root, int pid, int tid) {
    StatBuffer buffer;
    const auto read = read_stat(root.proc(), task_or_process(root, pid, tid) + "stat", buffer);
    if (!read) return std::unexpected(read.error());
    if (!*read || (*read)->id != tid || (*read)->is_dead()) return std::nullopt;
    return make_thread(root, pid, **read);
}

Result<std::vector<Thread>> read_threads(const host::Root& root, int pid) {
    auto scan = ProcessScan::open(root, pid);
    if (!scan) return std::unexpected(scan.error());
    if (!*scan) return std::vector<Thread>{};
    (*scan)->step([] { return false; });
    return (*scan)->take_threads();
}

std::optional<CpuSet> read_allowed(const host::Root& root, int pid, int tid) {
    const auto list = read_status(root, task_or_process(root, pid, tid), "\nCpus_allowed_list:");
    auto set = list ? CpuSet::parse_list(*list) : Result<CpuSet>(fail("no mask"));
    return set ? std::optional(std::move(*set)) : std::nullopt;
}

bool lives_on(const host::Root& root, const TaskId& process) {
    const auto path = std::to_string(process.tid) + "/stat";
    // No threads: the line is of a main thread whose number another one took over at this moment.
    for (int tries = 0; tries < 2; ++tries) {
        StatBuffer buffer;
        const auto read = read_stat(root.proc(), path, buffer);
        if (!read) return true; // nothing is known
        const auto& line = *read;
        if (!line || line->id != process.tid || line->start_time != process.start_time) return false;
        if (!line->is_dead() || line->threads > 1) return true;
        if (line->threads == 1) return false;
    }
    return false;
}

std::optional<int> read_parent(const host::Root& root, int pid) {
    StatBuffer buffer;
    const auto read = read_stat(root.proc(), std::to_string(pid) + "/stat", buffer);
    return read && *read ? std::optional((*read)->parent) : std::nullopt;
}

std::vector<int> read_ancestors(const host::Root& root, int parent) {
    constexpr std::size_t most = 64; // process trees are shallow
    std::vector<int> ancestors;
    for (int pid = parent; pid > 0 && ancestors.size() < most; pid = read_parent(root, pid).value_or(0))
        ancestors.push_back(pid);
    return ancestors;
}

std::optional<unsigned> read_real_user(const host::Root& root, int pid) {
    const auto text = read_status(root, std::to_string(pid) + "/", "\nUid:");
    const auto words = text ? split_words(*text) : std::vector<std::string_view>{};
    return words.empty() ? std::nullopt : parse_number<unsigned>(words[0]);
}

std::optional<int> read_process_id(const host::Root& root, int tid) {
    const auto text = read_status(root, std::to_string(tid) + "/", "\nTgid:");
    return text ? parse_number<int>(*text) : std::nullopt;
}

} // namespace affinityd::inventory
