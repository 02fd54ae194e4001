// SPDX-License-Identifier: Apache-2.0
#include "behaviours/trials/effects.hpp"

#include "accounting/passive_cost.hpp"
#include "base/clock.hpp"
#include "base/release.hpp"
#include "base/text.hpp"
#include "host/signals.hpp"
#include "inventory/process_files.hpp"
#include "policy/cgroup_path.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include <systemd/sd-journal.h>

namespace affinityd::behaviours {

namespace {

constexpr std::chrono::seconds patience_of_watch{60};
constexpr std::size_t most_threads = 512, most_units = 16; ///< that are read
constexpr std::uint64_t most_errors = 10'000;              ///< read at once

struct ThreadOf {
    int pid;
    TaskId id;
};

/// At most so many threads of a policy, evenly chosen: the same ones each time, by their numbers. Each stands
/// for `each` of them.
std::vector<ThreadOf> choose_threads(const TaskTable& tasks, std::size_t policy, std::uint32_t& each) {
    std::size_t all = 0;
    for (const auto& [pid, process] : tasks.processes())
        if (process.policy == policy) all += process.threads.size();
    each = static_cast<std::uint32_t>(all / most_threads + 1);
    constexpr std::uint32_t scatter =
        2654435761U; // by Fibonacci hashing: numbers of workers may be multiples
    std::vector<ThreadOf> chosen;
    for (const auto& [pid, process] : tasks.processes()) {
        if (process.policy != policy) continue;
        for (const auto& thread : process.threads)
            if (((static_cast<std::uint32_t>(thread.id.tid) * scatter) >> 16U) % each == 0)
                chosen.push_back({pid, thread.id});
    }
    return chosen;
}

} // namespace

double Effects::Counter::grow(std::optional<double> now) {
    const double growth = now && last && *now > *last ? *now - *last : 0;
    if (now) last = now;
    return growth;
}

planner::Effect Effects::look(std::size_t policy, bool is_settling) {
    auto& watched = watched_[shared_.current->policy(policy).name];
    watched.looked = Clock::now();
    if (is_settling) watched.journal.from = watched.looked;
    return std::exchange(watched.growth, {});
}

Slices Effects::read() {
    std::erase_if(watched_, [now = Clock::now()](const auto& one) {
        const bool has_ended = now - one.second.looked > patience_of_watch;
        return has_ended && !one.second.errors.valid(); // its end would wait for the reading
    });
    std::vector<std::string> names;
    for (const auto& [name, watched] : watched_)
        names.push_back(name);
    for (const auto& name : names) {
        auto& watched = watched_.at(name); // entries go at the beginning only
        const auto& policies = shared_.current->policies().policies;
        const auto found = std::ranges::find(policies, name, &policy::Policy::name);
        if (found == policies.end()) continue;
        const auto index = static_cast<std::size_t>(found - policies.begin());
        count_groups(name, index, watched);
        co_yield pause;
        count_errors(watched);
        std::uint32_t each = 1;
        const auto threads = choose_threads(tasks_.table(), index, each);
        Threads known;
        for (const auto& [pid, id] : threads) {
            co_yield pause;
            const auto time = inventory::read_sched_time(shared_.root, pid, id.tid);
            if (!time) continue;
            const auto path = std::to_string(pid) + "/task/" + std::to_string(id.tid) + "/sched";
            const auto sched = shared_.root.proc().text(path);
            const auto moved = sched ? inventory::parse_migrations(*sched) : std::nullopt;
            auto counts = watched.threads[id];
            auto& growth = watched.growth;
            const double ran = counts.ran.grow(static_cast<double>(time->run_ns) / 1e9);
            if (!watched.grouped.contains(pid)) growth.cpu_seconds += each * ran;
            growth.wait_seconds += each * counts.waited.grow(static_cast<double>(time->wait_ns) / 1e9);
            if (moved) growth.migrations += each * counts.moved.grow(static_cast<double>(*moved));
            known.emplace(id, counts);
        }
        watched.threads = std::move(known);
        count(name, watched);
        co_yield pause;
    }
}

/// All that counts for the policy as a whole, at one moment.
void Effects::count(const std::string& policy, Watched& watched) {
    auto& growth = watched.growth;
    growth.seconds += watched.seconds.grow(monotonic_seconds());
    const auto now = shared_.counters(policy);
    growth.bytes += watched.bytes.grow(now.bytes);
    growth.reads += watched.reads.grow(now.reads);
    growth.local_reads += watched.local_reads.grow(now.local_reads);
}

/// A group in which processes of others run, too, does not count: its processes of the policy do, each by its
/// threads.
void Effects::count_groups(const std::string& policy, std::size_t index, Watched& watched) {
    watched.grouped.clear();
    std::map<std::string, Counter> known;
    const auto groups = tasks_.groups().find(policy);
    for (const auto& group : groups == tasks_.groups().end() ? std::set<std::string>{} : groups->second) {
        const auto members = accounting::members_of(shared_.root, group);
        const auto is_ours = [&](int pid) { return tasks_.table().policy_of(pid) == index; };
        if (members.empty() || !std::ranges::all_of(members, is_ours)) continue;
        // In the first look at a group its threads count: it may have been left out for a moment.
        if (watched.groups[group].last) watched.grouped.insert(members.begin(), members.end());
        if (std::ranges::any_of(known, [&](const auto& one) { return group.starts_with(one.first + "/"); }))
            continue; // its time is part of that
        auto counter = watched.groups[group];
        watched.growth.cpu_seconds += counter.grow(accounting::seconds_of(shared_.root, group));
        known.emplace(group, counter);
    }
    watched.groups = std::move(known);
}

/// In a thread: it may wait for the disk. Goes on where the last reading ended.
Effects::Errors Effects::read_errors(const std::set<std::string>& units, Errors known) {
    known.found = 0;
    sd_journal* raw = nullptr;
    if (::sd_journal_open(&raw, SD_JOURNAL_LOCAL_ONLY) < 0) return known;
    const std::unique_ptr<sd_journal, Release<sd_journal_close>> journal(raw);
    const auto note = [&] {
        char* text = nullptr;
        if (::sd_journal_get_cursor(raw, &text) < 0) return;
        known.cursor = text;
        std::free(text);
    };
    if (known.cursor.empty()) {
        if (::sd_journal_seek_tail(raw) >= 0 && ::sd_journal_previous(raw) > 0) note();
        return known;
    }
    const auto match = [&](const std::string& field) {
        ::sd_journal_add_match(raw, field.data(), field.size());
    };
    for (const auto& unit : units)
        match("_SYSTEMD_UNIT=" + unit);
    for (char priority = '0'; priority <= '3'; ++priority)
        match(std::string("PRIORITY=") + priority);
    const auto from =
        usec_of(std::chrono::duration_cast<std::chrono::microseconds>(known.from.time_since_epoch()));
    const auto before = known.cursor;
    if (::sd_journal_seek_cursor(raw, before.c_str()) < 0) return known;
    for (std::uint64_t read = 0; read<most_errors&& ::sd_journal_next(raw)> 0; ++read) {
        if (::sd_journal_test_cursor(raw, before.c_str()) > 0) continue;
        note();
        std::uint64_t time = 0; // CLOCK_MONOTONIC
        if (::sd_journal_get_monotonic_usec(raw, &time, nullptr) >= 0 && time >= from) ++known.found;
    }
    return known;
}

/// A reading begins when the last one has ended. An entry counts for the side in whose round it was logged.
void Effects::count_errors(Watched& watched) {
    if (watched.errors.valid()) {
        if (watched.errors.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return;
        const auto read = watched.errors.get();
        watched.journal.cursor = read.cursor;
        if (read.from == watched.journal.from) watched.growth.errors += static_cast<double>(read.found);
    }
    std::set<std::string> units;
    for (const auto& [group, counter] : watched.groups)
        if (auto unit = policy::system_cgroup_names(group).unit; !unit.empty() && units.size() < most_units)
            units.insert(std::move(unit));
    if (units.empty()) return;
    const host::BlockedSignals blocked; // they are the loop's
    try {
        watched.errors = std::async(std::launch::async, read_errors, std::move(units), watched.journal);
    } catch (const std::system_error&) { // no thread is to be had: the next second, perhaps
    }
}

} // namespace affinityd::behaviours
