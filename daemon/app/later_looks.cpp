// SPDX-License-Identifier: Apache-2.0
#include "app/later_looks.hpp"

#include <algorithm>
#include <array>

namespace affinityd::app {

namespace {

using std::chrono::milliseconds;

/// Most programs have done it at the first; the distances grow with the time that has passed.
constexpr std::array series{milliseconds(100),  milliseconds(200),  milliseconds(400),  milliseconds(600),
                            milliseconds(800),  milliseconds(1000), milliseconds(1500), milliseconds(2000),
                            milliseconds(3000), milliseconds(5000)};
constexpr std::size_t most_looks_of_user = 4096, most_looks = 16'384;

} // namespace

LaterLooks::Look* LaterLooks::find_or_add(int pid, uid_t user) {
    if (const auto found = looks_.find(pid); found != looks_.end()) return &found->second;
    if (looks_.size() >= most_looks) return nullptr;
    auto& count = of_users_[user];
    if (count >= most_looks_of_user) return nullptr;
    ++count;
    auto& look = looks_.try_emplace(pid).first->second;
    look.user = user;
    look.place = due_.emplace(never, pid);
    return &look;
}

/// Where its next time is, among all; it has none: it is forgotten.
void LaterLooks::place(int pid, Look& look) {
    const auto when = std::min(look.series, look.once);
    if (when == never) return forget(pid);
    if (look.place->first == when) return;
    due_.erase(look.place);
    look.place = due_.emplace(when, pid);
}

void LaterLooks::begin_series(int pid, uid_t user, Clock::time_point now) {
    auto* look = find_or_add(pid, user);
    if (look == nullptr) return;
    look->begun = now;
    look->next = 0;
    look->series = now + series.front();
    place(pid, *look);
}

void LaterLooks::end_series(int pid) {
    const auto found = looks_.find(pid);
    if (found == looks_.end()) return;
    found->second.series = never;
    place(pid, found->second);
}

void LaterLooks::look_at(int pid, uid_t user, Clock::time_point when) {
    auto* look = find_or_add(pid, user);
    if (look == nullptr) return;
    look->once = when;
    place(pid, *look);
}

void LaterLooks::forget(int pid) {
    const auto found = looks_.find(pid);
    if (found == looks_.end()) return;
    const auto of = of_users_.find(found->second.user);
    if (--of->second == 0) of_users_.erase(of);
    due_.erase(found->second.place);
    looks_.erase(found);
}

std::optional<LaterLooks::Due> LaterLooks::take_due(Clock::time_point now) {
    if (due_.empty() || due_.begin()->first > now) return std::nullopt;
    const int pid = due_.begin()->second;
    auto& look = looks_.find(pid)->second;
    const Due due{pid, look.user};
    if (look.once <= now) look.once = never;
    // Who was looked at late has not changed more often meanwhile.
    while (look.series <= now)
        look.series = ++look.next < series.size() ? look.begun + series[look.next] : never;
    place(pid, look);
    return due;
}

} // namespace affinityd::app
