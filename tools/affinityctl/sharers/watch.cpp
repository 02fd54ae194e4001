// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/sharers/watch.hpp"

#include "base/text.hpp"
#include "inventory/process_files.hpp"
#include "planner/matcher.hpp"

#include <algorithm>
#include <cerrno>
#include <random>
#include <utility>

namespace affinityctl {

using affinityd::Result;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
namespace inventory = affinityd::inventory;

namespace {

constexpr milliseconds between_glances{250};
/// Where wake-ups are very many it looks at one part of so many, once in so long: to begin and to end costs
/// the program, too. When within that time is left to chance, as programs have a beat of their own.
constexpr milliseconds busy_glance{1000};
constexpr unsigned busy_parts = 8;

constexpr int most_asked = 1024;

bool is_hinting_on(const affinityd::host::Root& root) {
    const auto nodes = root.sys().cpu_list("devices/system/node/online");
    const auto setting = root.proc().number("sys/kernel/numa_balancing");
    return nodes && nodes->count() > 1 && setting && *setting > 0;
}

/// The service that the machine's systemd runs the process in; "": none.
std::string service_of(const inventory::ProcessFacts& facts) {
    const auto units = affinityd::planner::unit_names(facts);
    const bool is_system = facts.cgroup().starts_with("/system.slice/");
    return is_system && !units.empty() && units.front().ends_with(".service") ? units.front() : "";
}

/// One that is again what it was at first has no former value.
void take(std::string now, std::string& known, std::optional<std::string>& former) {
    if (!former) former = known;
    known = std::move(now);
    if (former == known) former.reset();
}

} // namespace

WatchedProcess watched_process(const inventory::ProcessScan& scan) {
    return {scan.id().tid, scan.comm(), service_of(scan.facts())};
}

bool look_again(const affinityd::host::Root& root, const affinityd::TaskId& id, WatchedProcess& process) {
    const auto scan = inventory::ProcessScan::open(root, id.tid);
    std::optional<WatchedProcess> now;
    if (scan && *scan && (*scan)->id() == id) now = watched_process(**scan);
    if (!inventory::lives_on(root, id)) return false; // afterwards: one that ends leaves its service at once
    if (!now) return true;
    take(std::move(now->name), process.name, process.former_name);
    take(std::move(now->unit), process.unit, process.former_unit);
    return true;
}

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

Result<WakeWatch> WakeWatch::of(const affinityd::host::Root& root, int id) {
    const auto pid = inventory::read_process_id(root, id);
    auto scan =
        pid ? inventory::ProcessScan::open(root, *pid) : Result<std::optional<inventory::ProcessScan>>();
    if (!scan) return std::unexpected(scan.error());
    if (!*scan) return affinityd::fail("there is no process " + std::to_string(id), {}, ESRCH);
    WakeWatch watch(root, (*scan)->id());
    watch.process_ = watched_process(**scan);
    return watch;
}

Result<void> WakeWatch::begin() {
    auto events = EventWakes::open(*root_);
    if (!events) return std::unexpected(events.error());
    events_ = std::move(*events);
    look_at_threads();
    events_->watch(id_.tid);
    began_ = ended_ = Clock::now();
    return {};
}

/// With its name: a script that executes the program itself is called otherwise when the watch begins, and
/// a policy by that name would mean every shell.
void WakeWatch::look_at_process() { has_ended_ = !look_again(*root_, id_, process_); }

void WakeWatch::look_at_threads() {
    look_at_process();
    if (has_ended_) return;
    auto threads = inventory::read_threads(*root_, id_.tid);
    if (threads && !threads->empty()) living_ = std::move(*threads);
}

/// True: the user wants no more.
bool WakeWatch::rest(milliseconds time, const std::function<bool(milliseconds)>& wait) {
    events_->rest();
    return time > milliseconds::zero() && wait(time);
}

Result<void> WakeWatch::run(milliseconds time, const std::function<bool(milliseconds)>& wait) {
    const auto end = began_ + time;
    Result<void> goes_on;
    bool is_busy = false;
    std::minstd_rand chance(std::random_device{}());
    for (auto now = Clock::now(); now < end; now = Clock::now()) {
        look_at_process();
        if (has_ended_) break;
        const auto glance =
            std::min(is_busy ? busy_glance : between_glances, std::chrono::ceil<milliseconds>(end - now));
        const auto looks = is_busy ? glance / busy_parts : glance;
        const auto before = milliseconds(
            std::uniform_int_distribution<milliseconds::rep>(0, (glance - looks).count())(chance));
        if (is_busy && rest(before, wait)) break;
        goes_on = events_->look(is_busy ? busy_parts : 1);
        if (!goes_on || wait(looks)) break;
        const bool was_busy = std::exchange(is_busy, events_->were_many());
        if (was_busy && rest(glance - looks - before, wait)) break;
    }
    events_->stop();
    ended_ = Clock::now();
    return goes_on;
}

Result<Wakes> WakeWatch::take() {
    auto wakes = events_->take();
    events_.reset();
    if (!wakes) return wakes;
    wakes->seconds = std::chrono::duration<double>(ended_ - began_).count();
    if (!has_ended_) look_at_threads();
    unsigned index = 0; // the main thread comes first, as policies count
    for (const auto& thread : living_) {
        auto& known = wakes->threads[thread.id];
        known.name = thread.comm;
        known.index = index++;
    }
    hinting_ = read_numa_groups(*root_, id_.tid, *wakes);
    return wakes;
}

} // namespace affinityctl
