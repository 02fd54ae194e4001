// SPDX-License-Identifier: Apache-2.0
#include "app/listener_glance.hpp"

#include <algorithm>

namespace affinityd::app {

bool ListenerGlance::step(const OutOfTime& out_of_time) {
    if (!table_.step(out_of_time)) return false;
    if (table_.fault()) return true;
    Listeners found;
    table_.for_each([&](const inventory::LocalSocket& socket) {
        const auto holds = [&](const auto& range) {
            return range.first <= socket.port && socket.port <= range.second;
        };
        if (std::ranges::any_of(ports_, holds)) found.push_back(socket.inode);
    });
    std::ranges::sort(found);
    seen_(std::move(found));
    return true;
}

} // namespace affinityd::app
