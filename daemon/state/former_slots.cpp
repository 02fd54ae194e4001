// SPDX-License-Identifier: Apache-2.0
#include "state/former_slots.hpp"

#include "base/text.hpp"
#include "host/file.hpp"
#include "state/journal_line.hpp"

#include <cstdint>
#include <utility>

#include <unistd.h>

namespace affinityd::state {

namespace {

constexpr std::string_view slot_mark = "slot";
constexpr std::size_t fields_of_slot = 4;
constexpr std::size_t longest_file = FormerSlots::most * 64;

} // namespace

FormerSlots::FormerSlots(std::string path) : path_(std::move(path)) {
    if (path_.empty()) return;
    const auto text = host::read_file(path_, longest_file, host::Links::refused);
    if (!text || !*text || boot_of(**text) != FileBoot::ours) return;
    for (const auto line : split(**text, '\n')) {
        const auto fields = fields_of(line);
        if (fields.size() != fields_of_slot || fields[0] != slot_mark) continue;
        const auto tid = parse_number<int>(fields[1]);
        const auto start = parse_number<std::uint64_t>(fields[2]);
        const auto cpu = parse_number<unsigned>(fields[3]);
        if (tid && start && cpu) slots_.insert_or_assign({*tid, *start}, *cpu);
    }
    kept_ = slots_;
    if (!slots_.empty()) until_ = Clock::now() + lasting;
}

Result<void> FormerSlots::keep(Slots slots) {
    // Nothing to keep needs no file, and on a small /run the journal needs the room.
    if (path_.empty() || (slots == kept_ && (slots.empty() || ::access(path_.c_str(), F_OK) == 0))) return {};
    auto text = header();
    for (const auto& [task, cpu] : slots)
        text += LineWriter(slot_mark).number(task.tid).number(task.start_time).number(cpu).finish();
    if (auto written = host::replace_file(path_, text, 0600); !written) return written;
    kept_ = std::move(slots);
    return {};
}

} // namespace affinityd::state
