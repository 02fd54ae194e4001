// SPDX-License-Identifier: Apache-2.0
#include "inventory/own_number.hpp"

#include "base/text.hpp"
#include "inventory/numbered.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::inventory {

namespace {

constexpr std::size_t most_listed = 1024, most_read = 64, longest_status = 8192;

/// The last number of its NSpid line: that of the innermost namespace, its own. 0: it is gone.
int own_number(const host::Root& root, int pid, int tid) {
    const auto path = std::to_string(pid) + "/task/" + std::to_string(tid) + "/status";
    const auto text = root.proc().read(path, longest_status);
    if (!text || !*text) return 0;
    constexpr std::string_view key = "\nNSpid:";
    const auto begin = (*text)->find(key);
    if (begin == std::string::npos) return 0;
    auto line = std::string_view(**text).substr(begin + key.size());
    line = trim_text(line.substr(0, line.find('\n')));
    const auto words = split(line, '\t');
    return parse_number<int>(words.back()).value_or(0);
}

std::vector<int> list_threads(const host::Root& root, int pid) {
    std::vector<int> tids;
    auto entries = NumberedEntries::open(root.proc(), std::to_string(pid) + "/task");
    while (entries && tids.size() < most_listed) {
        const auto next = entries->next();
        if (!next || !*next) break;
        tids.push_back(**next);
    }
    std::ranges::sort(tids);
    return tids;
}

} // namespace

std::optional<int> thread_by_own_number(const host::Root& root, int pid, int own) {
    const auto tids = list_threads(root, pid);
    if (own <= 0 || tids.empty()) return std::nullopt;
    const auto at =
        std::ranges::lower_bound(tids, own, {}, [&](int tid) { return own_number(root, pid, tid); });
    if (at != tids.end() && own_number(root, pid, *at) == own) return *at;
    const auto latest = tids.size() > most_read ? tids.end() - most_read : tids.begin();
    const auto found =
        std::find_if(latest, tids.end(), [&](int tid) { return own_number(root, pid, tid) == own; });
    return found == tids.end() ? std::nullopt : std::optional(*found);
}

} // namespace affinityd::inventory
