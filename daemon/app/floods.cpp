// SPDX-License-Identifier: Apache-2.0
#include "app/floods.hpp"

#include <algorithm>

namespace affinityd::app {

namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t many_events = 1000;     // in a second
constexpr std::uint64_t too_many_events = 5000; // to listen to
constexpr auto much_time = 100ms;               // in a second
constexpr std::uint64_t few_events = 10;        // large processes take long, too
constexpr Floods::Clock::duration first_pause = 100ms, longest_pause = 2s;
constexpr Floods::Clock::duration first_mute = 10s, longest_mute = 300s;
constexpr std::size_t most_records = 4096, most_muted = 16, most_listed = 64;

} // namespace

/// The second before decides whether the flood goes on: it is over after one that was quiet.
void Floods::begin_second(Record& record, Clock::time_point now) {
    if (now - record.second < 1s) return;
    const bool was_quiet =
        now - record.second >= 2s || (record.events < many_events / 2 && record.cost < much_time / 2);
    if (was_quiet && !record.is_muted(now)) record.pause = {}, record.a_second = 0;
    record.second = now;
    record.events = 0;
    record.cost = {};
}

void Floods::judge(int pid, Record& record, Clock::time_point now) {
    record.a_second = std::max(record.a_second, record.events);
    const bool is_much =
        record.events >= many_events || (record.cost >= much_time && record.events >= few_events);
    if (is_much && !record.floods()) record.pause = first_pause;
    if (record.events >= too_many_events && !record.is_muted(now)) mute(pid, record, now);
}

void Floods::mute(int pid, Record& record, Clock::time_point now) {
    if (muted_.size() >= most_muted) return;
    if (std::ranges::find(muted_, pid) == muted_.end()) muted_.push_back(pid);
    const bool is_again =
        record.muted_for > Clock::duration::zero() && now - record.muted_until < longest_mute;
    record.muted_for = is_again ? std::min(record.muted_for * 2, longest_mute) : first_mute;
    record.muted_until = now + record.muted_for;
}

/// One that does not flood and has made few events is forgotten first. Not tried for each of many.
bool Floods::make_room(Clock::time_point now) {
    if (records_.size() < most_records) return true;
    if (now < swept_ + 100ms) return false;
    swept_ = now;
    std::erase_if(records_, [&](const auto& entry) {
        const auto& record = entry.second;
        return !record.is_muted(now) &&
               (now - record.second >= 2s || (!record.floods() && record.events < few_events));
    });
    return records_.size() < most_records;
}

bool Floods::note_newcomer(int pid) {
    if (records_.contains(pid) || std::ranges::find(newcomers_, pid) != newcomers_.end()) return false;
    newcomers_[next_newcomer_] = pid;
    next_newcomer_ = (next_newcomer_ + 1) % newcomers_.size();
    return true;
}

void Floods::count(int pid, uid_t user, Clock::time_point now) {
    auto found = records_.find(pid);
    if (found == records_.end()) {
        if (!make_room(now)) return; // its user's turn is all that holds it back
        found = records_.try_emplace(pid, Record{.second = now}).first;
    }
    auto& record = found->second;
    record.user = user;
    begin_second(record, now);
    ++record.events;
    judge(pid, record, now);
}

void Floods::charge(int pid, Clock::duration time, Clock::time_point now) {
    auto found = records_.find(pid);
    if (found == records_.end()) {
        if (time < long_look || !make_room(now)) return;
        found = records_.try_emplace(pid, Record{.second = now}).first;
    }
    begin_second(found->second, now);
    found->second.cost += time;
    judge(pid, found->second, now);
}

Floods::Clock::time_point Floods::next_look(int pid, Clock::time_point now) {
    const auto found = records_.find(pid);
    if (found == records_.end()) return now;
    begin_second(found->second, now);
    return found->second.floods() ? std::max(now, found->second.looked + found->second.pause) : now;
}

void Floods::looked(int pid, Clock::time_point now) {
    const auto found = records_.find(pid);
    if (found == records_.end()) return;
    auto& record = found->second;
    if (record.floods() && record.looked != Clock::time_point{})
        record.pause = std::min(record.pause * 2, longest_pause);
    record.looked = now;
}

void Floods::overflowed(Clock::time_point now) {
    for (auto& [pid, record] : records_)
        if (record.floods() && !record.is_muted(now)) mute(pid, record, now);
}

bool Floods::is_muted(int pid, Clock::time_point now) const {
    const auto found = records_.find(pid);
    return found != records_.end() && found->second.is_muted(now);
}

std::vector<int> Floods::muted(Clock::time_point now) {
    std::erase_if(muted_, [&](int pid) { return !is_muted(pid, now); });
    std::ranges::sort(muted_);
    return muted_;
}

Floods::Clock::time_point Floods::next_change() const {
    auto next = Clock::time_point::max();
    for (const int pid : muted_)
        if (const auto found = records_.find(pid); found != records_.end())
            next = std::min(next, found->second.muted_until);
    return next;
}

std::vector<status::FloodStatus> Floods::list(Clock::time_point now) const {
    std::vector<status::FloodStatus> floods;
    for (const auto& [pid, record] : records_) {
        if (!record.floods() || (now - record.second >= 2s && !record.is_muted(now))) continue;
        floods.push_back({.pid = pid,
                          .uid = record.user,
                          .events_a_minute = record.a_second * 60,
                          .pause = std::chrono::duration_cast<std::chrono::milliseconds>(record.pause),
                          .is_muted = record.is_muted(now)});
    }
    std::ranges::sort(floods, [](const auto& a, const auto& b) {
        return a.events_a_minute != b.events_a_minute ? a.events_a_minute > b.events_a_minute : a.pid < b.pid;
    });
    if (floods.size() > most_listed) floods.resize(most_listed);
    return floods;
}

} // namespace affinityd::app
