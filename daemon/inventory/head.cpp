// SPDX-License-Identifier: Apache-2.0
#include "inventory/head.hpp"

#include "base/text.hpp"
#include "inventory/scan.hpp"
#include "inventory/stat_file.hpp"

namespace affinityd::inventory {

std::optional<Head> read_head(const host::Root& root, int pid, FactSources* sources) {
    StatBuffer buffer;
    const auto line = read_stat(root.proc(), std::to_string(pid) + "/stat", buffer).value_or(std::nullopt);
    if (!line || line->id != pid || (line->is_dead() && line->threads <= 1)) return std::nullopt;
    const TaskId id{pid, line->start_time};
    Head head{id, unescape_comm(line->comm), line->flags, nullptr};
    head.facts = std::make_unique<LazyFacts>(root, sources,
                                             LazyFacts::Cheap{id, line->parent, line->flags, head.comm});
    return head;
}

std::vector<Thread> read_threads(const host::Root& root, int pid) {
    auto process = read_process(root, pid);
    return process ? std::move(process->threads) : std::vector<Thread>{};
}

std::optional<int> read_parent(const host::Root& root, int pid) {
    StatBuffer buffer;
    const auto line = read_stat(root.proc(), std::to_string(pid) + "/stat", buffer).value_or(std::nullopt);
    return line ? std::optional(line->parent) : std::nullopt;
}

std::optional<int> read_process_id(const host::Root& root, int tid) {
    const auto text = root.proc().read(std::to_string(tid) + "/status", 64U << 10);
    if (!text || !*text) return std::nullopt;
    constexpr std::string_view key = "\nTgid:";
    const auto at = (*text)->find(key);
    if (at == std::string::npos) return std::nullopt;
    const std::string_view value = std::string_view(**text).substr(at + key.size());
    return parse_number<int>(trim_text(value.substr(0, value.find('\n'))));
}

} // namespace affinityd::inventory
