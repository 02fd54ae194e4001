// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/sharers/numa_groups.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <string>

namespace affinityctl {

namespace {

constexpr int most_asked = 1024;

bool is_hinting_on(const affinityd::host::Root& root) {
    const auto nodes = root.sys().cpu_list("devices/system/node/online");
    const auto setting = root.proc().number("sys/kernel/numa_balancing");
    return nodes && nodes->count() > 1 && setting && *setting > 0;
}

} // namespace

std::optional<unsigned> numa_group_in(std::string_view text) {
    constexpr std::string_view key = "numa_group_id=";
    const auto at = text.find(key);
    if (at == std::string_view::npos) return std::nullopt;
    const auto value = text.substr(at + key.size());
    const auto end = std::ranges::find_if_not(value, affinityd::is_digit);
    return affinityd::parse_number<unsigned>(std::string_view(value.begin(), end));
}

NumaHinting read_numa_groups(const affinityd::host::Root& root, int pid, Wakes& wakes) {
    if (!is_hinting_on(root)) return NumaHinting::off;
    int asked = 0;
    bool has_answer = false;
    for (auto& [id, thread] : wakes.threads) {
        if (!thread.index || asked++ >= most_asked) continue;
        const auto text =
            root.proc().text(std::to_string(pid) + "/task/" + std::to_string(id.tid) + "/sched");
        const auto group = text ? numa_group_in(*text) : std::nullopt;
        has_answer = has_answer || group.has_value();
        if (group && *group > 0) thread.pages_group = *group;
    }
    return has_answer ? NumaHinting::has_told : NumaHinting::hidden;
}

} // namespace affinityctl
