// SPDX-License-Identifier: Apache-2.0
#include "inventory/accept_work.hpp"

#include "base/text.hpp"
#include "inventory/run_record.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace affinityd::inventory {

void AcceptWork::note(AcceptSockets& process) {
    auto& seen = seen_[process.process];
    seen.is_there = true;
    const auto before = std::exchange(seen.used, {});
    const auto served = std::exchange(seen.serving, {});
    std::map<int, std::size_t> units; // of threads that were read before
    for (const auto& socket : process.sockets)
        for (const int thread : socket.threads) {
            if (seen.used.contains(thread)) continue;
            const auto text = root_.proc().read(
                std::to_string(process.process.tid) + "/task/" + std::to_string(thread) + "/schedstat", 256);
            const auto used = text && *text ? parse_schedstat(**text) : std::nullopt;
            if (!used) continue;
            auto& now = seen.used[thread] = std::chrono::nanoseconds(static_cast<std::int64_t>(*used));
            const auto known = before.find(thread);
            if (known == before.end() || now < known->second) continue;
            units[thread] = static_cast<std::size_t>((now - known->second) / unit);
            now -= (now - known->second) % unit;
        }
    for (auto& socket : process.sockets) {
        if (socket.is_serving) seen.serving.insert(socket.cookie);
        if (socket.is_serving || served.contains(socket.cookie)) continue;
        for (const int thread : socket.threads)
            if (const auto known = units.find(thread); known != units.end())
                socket.work = socket.work.value_or(0) + known->second;
    }
}

void AcceptWork::end_round() {
    std::erase_if(seen_, [](const auto& one) { return !one.second.is_there; });
    for (auto& [process, seen] : seen_)
        seen.is_there = false;
}

std::optional<std::uint64_t> parse_passive_opens(std::string_view snmp) {
    std::vector<std::string_view> heading;
    for (const auto line : split(snmp, '\n')) {
        if (!line.starts_with("Tcp:")) continue;
        auto words = split_words(line);
        if (heading.empty()) {
            heading = std::move(words);
            continue;
        }
        const auto at = static_cast<std::size_t>(
            std::distance(heading.begin(), std::ranges::find(heading, "PassiveOpens")));
        return at < heading.size() && at < words.size() ? parse_number<std::uint64_t>(words[at])
                                                        : std::nullopt;
    }
    return std::nullopt;
}

} // namespace affinityd::inventory
