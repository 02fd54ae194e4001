// SPDX-License-Identifier: Apache-2.0
#include "inventory/run_record.hpp"

#include "base/text.hpp"
#include "inventory/process_files.hpp"

#include <string>

#include <unistd.h>

namespace affinityd::inventory {

namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;

} // namespace

std::optional<RunRecord> parse_run_record(std::string_view stat, long ticks) {
    const auto times = parse_stat_times(stat);
    if (!times || !times->cpu || ticks <= 0) return std::nullopt;
    RunRecord record;
    record.start_time = times->start_time;
    record.cpu = *times->cpu;
    record.run_ns = (times->user + times->system) * (second_ns / static_cast<std::uint64_t>(ticks));
    return record;
}

std::optional<std::uint64_t> parse_schedstat(std::string_view text) {
    return parse_number<std::uint64_t>(text.substr(0, text.find(' ')));
}

std::optional<SchedTime> parse_sched_time(std::string_view schedstat) {
    const auto words = split_words(schedstat.substr(0, schedstat.find('\n')));
    if (words.size() < 2) return std::nullopt;
    const auto run = parse_number<std::uint64_t>(words[0]);
    const auto wait = parse_number<std::uint64_t>(words[1]);
    return run && wait ? std::optional(SchedTime{*run, *wait}) : std::nullopt;
}

std::optional<SchedTime> read_sched_time(const host::Root& root, int pid, int tid) {
    const auto text =
        root.proc().read(std::to_string(pid) + "/task/" + std::to_string(tid) + "/schedstat", 256);
    return text && *text ? parse_sched_time(**text) : std::nullopt;
}

std::optional<std::uint64_t> parse_migrations(std::string_view sched) {
    constexpr std::string_view key = "\nse.nr_migrations";
    const auto at = sched.find(key);
    if (at == std::string_view::npos) return std::nullopt;
    auto rest = sched.substr(at + key.size());
    rest = rest.substr(0, rest.find('\n'));
    const auto colon = rest.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    return parse_number<std::uint64_t>(trim_text(rest.substr(colon + 1)));
}

std::optional<RunRecord> read_run_record(const host::Root& root, int pid, int tid) {
    constexpr std::size_t limit = 64U << 10;
    const std::string folder = std::to_string(pid) + "/task/" + std::to_string(tid) + "/";
    const auto text = [&](const char* name) -> std::optional<std::string> {
        auto read = root.proc().read(folder + name, limit);
        return read ? std::move(*read) : std::nullopt;
    };
    const auto stat = text("stat");
    auto record = stat ? parse_run_record(*stat, ::sysconf(_SC_CLK_TCK)) : std::nullopt;
    if (!record) return std::nullopt;
    if (const auto schedstat = text("schedstat"))
        if (const auto run = parse_schedstat(*schedstat); run && *run > 0) record->run_ns = *run;
    if (const auto sched = text("sched")) record->migrations = parse_migrations(*sched);
    return record;
}

} // namespace affinityd::inventory
