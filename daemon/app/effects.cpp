// SPDX-License-Identifier: Apache-2.0
#include "app/effects.hpp"

#include "app/daemon.hpp"
#include "base/clock.hpp"
#include "base/release.hpp"
#include "base/text.hpp"
#include "host/signals.hpp"
#include "inventory/process_files.hpp"
#include "policy/cgroup_path.hpp"

#include <algorithm>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include <systemd/sd-journal.h>

namespace affinityd::app {

namespace {

constexpr std::chrono::seconds patience_of_watch{60}, between_journals{5};
constexpr std::size_t most_threads = 512, most_units = 16; ///< that are read
constexpr std::uint64_t most_errors = 10'000;              ///< counted at one reading of the journal

/// So many errors have the units put into the journal since then. In a thread: it may wait for the disk. 0 if
/// the journal cannot be read.
std::uint64_t errors_since(const std::set<std::string>& units, std::int64_t since) {
    sd_journal* raw = nullptr;
    if (::sd_journal_open(&raw, SD_JOURNAL_LOCAL_ONLY) < 0) return 0;
    const std::unique_ptr<sd_journal, Release<sd_journal_close>> journal(raw);
    const auto match = [&](const std::string& field) {
        ::sd_journal_add_match(raw, field.data(), field.size());
    };
    for (const auto& unit : units)
        match("_SYSTEMD_UNIT=" + unit);
    for (char priority = '0'; priority <= '3'; ++priority)
        match(std::string("PRIORITY=") + priority);
    if (::sd_journal_seek_realtime_usec(raw, static_cast<std::uint64_t>(since)) < 0) return 0;
    std::uint64_t errors = 0;
    while (errors<most_errors&& ::sd_journal_next(raw)> 0)
        ++errors;
    return errors;
}

std::int64_t usec_since_1970() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

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

planner::Effect Effects::look(std::size_t policy) {
    auto& watched = watched_[shared_.current->policy(policy).name];
    watched.looked = Clock::now();
    return std::exchange(watched.growth, {});
}

Slices Effects::read() {
    std::erase_if(watched_, [now = Clock::now()](const auto& one) {
        const bool has_ended = now - one.second.looked > patience_of_watch;
        return has_ended && !one.second.journal.valid(); // its end would wait for the reading
    });
    std::vector<std::string> names;
    for (const auto& [name, watched] : watched_)
        names.push_back(name);
    for (const auto& name : names) {
        auto& watched = watched_.at(name); // entries go at the beginning only
        count_errors(name, watched);
        co_yield pause;
        const auto& policies = shared_.current->policies().policies;
        const auto found = std::ranges::find(policies, name, &policy::Policy::name);
        if (found == policies.end()) continue;
        std::uint32_t each = 1;
        const auto threads = choose_threads(tasks_, static_cast<std::size_t>(found - policies.begin()), each);
        Threads known;
        for (const auto& [pid, id] : threads) {
            co_yield pause;
            const auto time = inventory::read_sched_time(shared_.root, pid, id.tid);
            if (!time) continue;
            const auto path = std::to_string(pid) + "/task/" + std::to_string(id.tid) + "/sched";
            const auto sched = shared_.root.proc().text(path);
            const auto moved = sched ? inventory::parse_migrations(*sched) : std::nullopt;
            auto counts = watched.threads[id];
            watched.growth.wait_seconds +=
                each * counts.waited.grow(static_cast<double>(time->wait_ns) / 1e9);
            if (moved) watched.growth.migrations += each * counts.moved.grow(static_cast<double>(*moved));
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
    if (const auto cost = costs_.count(policy)) {
        growth.cpu_seconds += watched.cpu_seconds.grow(cost->cpu_seconds);
        growth.bytes += watched.bytes.grow(cost->bytes);
    }
    const auto sum = steering_.read_sum(policy);
    growth.reads += watched.reads.grow(static_cast<double>(sum.reads));
    growth.local_reads += watched.local_reads.grow(static_cast<double>(sum.local));
    growth.retransmits += watched.retransmits.grow(retransmits());
}

/// A reading begins every few seconds, and counts when it has ended.
void Effects::count_errors(const std::string& policy, Watched& watched) {
    using std::chrono::seconds;
    if (watched.journal.valid()) {
        if (watched.journal.wait_for(seconds(0)) != std::future_status::ready) return;
        watched.growth.errors += static_cast<double>(watched.journal.get());
    }
    const auto now = Clock::now();
    if (now - watched.journal_read < between_journals) return;
    watched.journal_read = now;
    const auto since = std::exchange(watched.journal_since, usec_since_1970());
    watched.units.clear();
    if (const auto* groups = costs_.groups(policy))
        for (const auto& group : *groups)
            if (auto unit = policy::system_cgroup_names(group).unit;
                !unit.empty() && watched.units.size() < most_units)
                watched.units.insert(std::move(unit));
    if (since == 0 || watched.units.empty()) return;
    const host::BlockedSignals blocked; // they are the loop's
    try {
        watched.journal = std::async(std::launch::async, errors_since, watched.units, since);
    } catch (const std::system_error&) { // no thread is to be had
        watched.journal_since = since;
    }
}

/// Since the machine was started, in our network namespace: net/snmp has a line of names and one of numbers.
std::optional<double> Effects::retransmits() const {
    const auto text = shared_.root.proc().text("net/snmp");
    if (!text) return std::nullopt;
    std::vector<std::string_view> names;
    for (const auto line : split(*text, '\n')) {
        if (!line.starts_with("Tcp:")) continue;
        const auto words = split_words(line);
        if (names.empty()) {
            names = words;
            continue;
        }
        const auto at = static_cast<std::size_t>(std::ranges::find(names, "RetransSegs") - names.begin());
        const auto number = at < words.size() ? parse_number<std::uint64_t>(words[at]) : std::nullopt;
        return number ? std::optional(static_cast<double>(*number)) : std::nullopt;
    }
    return std::nullopt;
}

void Daemon::tick() {
    if (is_stopping_ || std::exchange(is_in_tick_, true)) return;
    work().add(watch());
}

Slices Daemon::watch() {
    for (auto reading = effects_.read(); !reading.step(a_part);)
        co_yield pause;
    look_at_trials();
    automatic_.tick();
    is_in_tick_ = false;
}

} // namespace affinityd::app
