// SPDX-License-Identifier: Apache-2.0
#include "experiments/cache/polluter.hpp"

#include "base/text.hpp"
#include "host/root.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace affinityd::experiments {

namespace {

/// Caches keep what was used often before what is read once, so that twice their size leaves most of it there
/// (measured: 16 % lost after twice the size, 34 % after four times, 43 % after eight, 48 % after sixteen).
constexpr std::uint64_t times_last_level = 8, times_own = 2;

/// The number behind a key of /proc/meminfo or memory.stat.
std::optional<std::uint64_t> number_of(std::string_view text, std::string_view key) {
    for (const auto line : split(text, '\n')) {
        const auto words = split_words(line);
        if (words.size() >= 2 && words[0] == key) return parse_number<std::uint64_t>(words[1]);
    }
    return std::nullopt;
}

/// The control group of this program below the folder of all; no value: there is only version 1.
std::optional<std::string> own_group(const host::Root& root) {
    const auto text = root.proc().text("self/cgroup");
    if (!text) return std::nullopt;
    for (const auto line : split(*text, '\n'))
        if (line.starts_with("0::/")) return std::string(line.substr(4));
    return std::nullopt;
}

/// What one group leaves; no value: it has no limit. Files that were read some time ago make room.
std::optional<std::uint64_t> left_in_group(const host::Dir& sys, const std::string& group) {
    const auto folder = "fs/cgroup/" + (group.empty() ? group : group + "/");
    std::optional<std::uint64_t> limit;
    for (const auto* name : {"memory.max", "memory.high"}) // a number, or "max"
        if (const auto bytes = sys.number(folder + name); bytes && *bytes >= 0)
            limit = std::min(limit.value_or(static_cast<std::uint64_t>(*bytes)),
                             static_cast<std::uint64_t>(*bytes));
    const auto current = sys.number(folder + "memory.current");
    if (!limit || !current) return std::nullopt;
    const auto stat = sys.text(folder + "memory.stat");
    const auto files = stat ? number_of(*stat, "inactive_file").value_or(0) : 0;
    const auto taken = static_cast<std::uint64_t>(std::max(*current, 0LL));
    const auto used = taken - std::min(taken, files);
    return *limit - std::min(*limit, used);
}

} // namespace

Polluter polluter_for(const CacheSizes& sizes, std::optional<std::uint64_t> available) {
    Polluter polluter{.enough = times_last_level * sizes.last, .available = available};
    polluter.bytes = std::min(polluter.enough, most_polluter);
    if (available) polluter.bytes = std::min(polluter.bytes, *available / 2);
    polluter.bytes = std::max(polluter.bytes, std::min(times_own * sizes.own, most_polluter));
    return polluter;
}

std::optional<std::uint64_t> available_memory(const host::Root& root) {
    std::optional<std::uint64_t> available;
    if (const auto text = root.proc().text("meminfo"))
        if (const auto kib = number_of(*text, "MemAvailable:")) available = *kib << 10U;
    auto group = own_group(root);
    while (group) {
        if (const auto left = left_in_group(root.sys(), *group))
            available = std::min(available.value_or(*left), *left);
        if (group->empty()) break;
        const auto above = group->rfind('/');
        group->resize(above == std::string::npos ? 0 : above);
    }
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
