// SPDX-License-Identifier: Apache-2.0
#include "irq/reader.hpp"

#include "base/text.hpp"
#include "host/root.hpp"

#include <algorithm>
#include <array>
#include <set>

#include <fcntl.h>
#include <sys/stat.h>

namespace affinityd::irq {

namespace {

/// Files of /proc/irq/N that are no handler's directory. Source: kernel/irq/proc.c.
constexpr std::array<std::string_view, 8> own_files = {"affinity_hint",
                                                       "effective_affinity",
                                                       "effective_affinity_list",
                                                       "node",
                                                       "smp_affinity",
                                                       "smp_affinity_list",
                                                       "spurious",
                                                       "threaded"};

bool is_writable(const host::Dir& dir) {
    const auto file = dir.open_file("smp_affinity_list", O_PATH);
    struct stat status {};
    if (!file || ::fstat(file->get(), &status) != 0) return true; // an absent file proves nothing
    return (status.st_mode & 0222) != 0;
}

void read_affinity(const host::Dir& dir, bool live, Irq& irq) {
    irq.requested = dir.cpu_list("smp_affinity_list");
    if (!irq.requested) irq.requested = dir.cpu_mask("smp_affinity");
    irq.effective = dir.cpu_list("effective_affinity_list");
    if (!irq.effective) irq.effective = dir.cpu_mask("effective_affinity");
    irq.hint = dir.cpu_mask("affinity_hint");
    if (irq.hint && irq.hint->empty()) irq.hint.reset();
    if (live) irq.writable = is_writable(dir); // the modes of a recording are its unpacker's
}

/// Adds lines that the table lacks (a container may see an empty one): handlers are directories below
/// /proc/irq/N.
Result<void> add_missing(const host::Dir& proc, const std::vector<std::string>& numbers,
                         InterruptTable& table) {
    std::set<unsigned> present;
    for (const auto& line : table.irqs)
        present.insert(line.number);
    for (const auto& name : numbers) {
        const auto number = parse_number<unsigned>(name);
        if (!number || present.contains(*number)) continue;
        Irq line;
        line.number = *number;
        auto entries = proc.list("irq/" + name);
        if (!entries) return std::unexpected(entries.error());
        for (auto& entry : *entries)
            if (std::ranges::find(own_files, entry) == own_files.end())
                line.actions.push_back(std::move(entry));
        if (!line.actions.empty()) table.irqs.push_back(std::move(line));
    }
    return {};
}

} // namespace

Result<InterruptTable> read_interrupts(const host::Root& root) {
    const auto& proc = root.proc();
    auto text = proc.read("interrupts");
    if (!text) return std::unexpected(text.error());
    const auto numbers = proc.list("irq");
    if (!numbers) return std::unexpected(numbers.error());
    InterruptTable table;
    if (*text) table = parse_interrupts(**text);
    if (auto added = add_missing(proc, *numbers, table); !added) return std::unexpected(added.error());
    if (numbers->empty()) return table;
    for (auto& line : table.irqs) {
        const auto dir = proc.dir("irq/" + std::to_string(line.number));
        if (dir)
            read_affinity(*dir, root.is_live(), line);
        else if (!host::means_absent(dir.error().code))
            return std::unexpected(dir.error());
    }
    return table;
}

} // namespace affinityd::irq
