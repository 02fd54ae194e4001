// SPDX-License-Identifier: Apache-2.0
#include "experiments/cache/polluter.hpp"

#include "base/text.hpp"
#include "host/root.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include <fmt/format.h>

namespace affinityd::experiments {

namespace {

/// Caches keep what was used often before what is read once, so that twice their size leaves most of it there
/// (measured: 16 % lost after twice the size, 34 % after four times, 43 % after eight, 48 % after sixteen).
constexpr std::uint64_t times_last_level = 8, times_own = 2;
constexpr std::uint64_t small_footprint = 2U << 20U; ///< for which there is always room: a huge page

/// The number behind a key of /proc/meminfo or memory.stat.
std::optional<std::uint64_t> number_of(std::string_view text, std::string_view key) {
    for (const auto line : split(text, '\n')) {
        const auto words = split_words(line);
        if (words.size() >= 2 && words[0] == key) return parse_number<std::uint64_t>(words[1]);
    }
    return std::nullopt;
}

/// How one version of control groups tells what memory a group has.
struct GroupFiles {
    std::string_view controller; ///< in /proc/self/cgroup; version 2 names none
    std::string folder;          ///< of all groups, below /sys
    std::array<const char*, 2> limits;
    const char* current;
    const char* inactive_files; ///< in memory.stat
};

const std::array<GroupFiles, 2>& versions() {
    static const std::array<GroupFiles, 2> both{
        {{"", "fs/cgroup/", {"memory.max", "memory.high"}, "memory.current", "inactive_file"},
         {"memory",
          "fs/cgroup/memory/",
          {"memory.limit_in_bytes", "memory.limit_in_bytes"},
          "memory.usage_in_bytes",
          "total_inactive_file"}}};
    return both;
}

/// The control group of this program below the folder of all; no value: it is in none of that version.
std::optional<std::string> own_group(const host::Root& root, std::string_view controller) {
    const auto text = root.proc().text("self/cgroup");
    if (!text) return std::nullopt;
    for (const auto line : split(*text, '\n')) { // "4:cpu,memory:/a.slice"
        const auto parts = split(line, ':');
        if (parts.size() < 3 || !parts[2].starts_with('/')) continue;
        const auto names = split(parts[1], ',');
        if (std::ranges::find(names, controller) == names.end()) continue;
        return std::string(line.substr(parts[0].size() + parts[1].size() + 3));
    }
    return std::nullopt;
}

/// What one group leaves; no value: it has no limit. Files that were read some time ago make room.
std::optional<std::uint64_t> left_in_group(const host::Dir& sys, const GroupFiles& files,
                                           const std::string& group) {
    const auto folder = files.folder + (group.empty() ? group : group + "/");
    std::optional<std::uint64_t> limit;
    for (const auto* name : files.limits) // a number, or "max"
        if (const auto bytes = sys.number(folder + name); bytes && *bytes >= 0)
            limit = std::min(limit.value_or(static_cast<std::uint64_t>(*bytes)),
                             static_cast<std::uint64_t>(*bytes));
    const auto current = sys.number(folder + files.current);
    if (!limit || !current) return std::nullopt;
    const auto stat = sys.text(folder + "memory.stat");
    const auto inactive = stat ? number_of(*stat, files.inactive_files).value_or(0) : 0;
    const auto taken = static_cast<std::uint64_t>(std::max(*current, 0LL));
    const auto used = taken - std::min(taken, inactive);
    return *limit - std::min(*limit, used);
}

/// The least that the group of this program and those above it leave; no value: none has a limit.
std::optional<std::uint64_t> left_in_groups(const host::Root& root, const GroupFiles& files) {
    std::optional<std::uint64_t> least;
    auto group = own_group(root, files.controller);
    while (group) {
        if (const auto left = left_in_group(root.sys(), files, *group))
            least = std::min(least.value_or(*left), *left);
        if (group->empty()) break;
        const auto above = group->rfind('/');
        group->resize(above == std::string::npos ? 0 : above);
    }
    return least;
}

} // namespace

Polluter polluter_for(const CacheSizes& sizes, std::optional<std::uint64_t> available) {
    Polluter polluter{.enough = times_last_level * sizes.last, .available = available};
    polluter.bytes = std::min(polluter.enough, most_polluter);
    if (available) polluter.bytes = std::min(polluter.bytes, *available / 2);
    polluter.bytes = std::max(polluter.bytes, std::min(times_own * sizes.own, most_polluter));
    return polluter;
}

std::vector<std::uint64_t> take_out_too_large(std::vector<std::uint64_t>& footprints,
                                              const Polluter& polluter) {
    if (!polluter.available) return {};
    const auto rest = *polluter.available - std::min(*polluter.available, polluter.bytes);
    const auto most = std::max(small_footprint, rest / 4 * 3); // the program itself needs some, too
    std::vector<std::uint64_t> too_large;
    std::ranges::copy_if(footprints, std::back_inserter(too_large),
                         [&](std::uint64_t bytes) { return bytes > most; });
    std::erase_if(footprints, [&](std::uint64_t bytes) { return bytes > most; });
    return too_large;
}

std::string words_for_too_large(std::span<const std::uint64_t> footprints, const Polluter& polluter) {
    if (footprints.empty()) return {};
    std::string all;
    for (const auto bytes : footprints)
        all += (all.empty() ? "" : ", ") + bytes_words(bytes);
    return fmt::format(
        "there is no memory for working sets of {} beside the polluter of {}, as {} could be had", all,
        bytes_words(polluter.bytes), bytes_words(*polluter.available));
}

std::optional<std::uint64_t> available_memory(const host::Root& root) {
    std::optional<std::uint64_t> available;
    if (const auto text = root.proc().text("meminfo"))
        if (const auto kib = number_of(*text, "MemAvailable:")) available = *kib << 10U;
    for (const auto& files : versions())
        if (const auto left = left_in_groups(root, files))
            available = std::min(available.value_or(*left), *left);
    return available;
}

std::string remark_of(const Polluter& polluter) {
    if (polluter.is_enough()) return {};
    const auto why = polluter.bytes == most_polluter
                         ? std::string("the most that this experiment takes")
                         : fmt::format("as {} of memory could be had", bytes_words(*polluter.available));
    return fmt::format("the polluter reads {}, {}, and it takes {}, {} times the last level, to empty that: "
                       "what it costs to lose the last level may be more than is shown",
                       bytes_words(polluter.bytes), why, bytes_words(polluter.enough), times_last_level);
}

} // namespace affinityd::experiments
