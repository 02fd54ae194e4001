// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/intruders/watch.hpp"
#include "base/text.hpp"
#include "inventory/descriptors.hpp"
#include "inventory/process_files.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace affinityctl {

using affinityd::CpuSet;
using affinityd::Result;
using affinityd::host::Root;
namespace inventory = affinityd::inventory;

namespace {

constexpr std::array<std::string_view, 10> softirqs{"HI",       "TIMER",   "NET_TX", "NET_RX",  "BLOCK",
                                                    "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};

/// Rows of x86 that tracepoints tell, too. Source: arch/x86/kernel/irq.c.
constexpr std::array<std::pair<std::string_view, IntruderKind>, 6> known_rows{{{"LOC", intruders_timer},
                                                                               {"RES", intruders_reschedule},
                                                                               {"CAL", intruders_call},
                                                                               {"TLB", intruders_call},
                                                                               {"IWI", intruders_irq_work},
                                                                               {"NMI", intruders_nmi}}};

IntruderKind kind_of_row(const std::string& key) {
    const auto known = std::ranges::find(known_rows, key, &std::pair<std::string_view, IntruderKind>::first);
    if (known != known_rows.end()) return known->second;
    if (std::ranges::find(softirqs, key) != softirqs.end()) return intruders_softirq;
    return std::ranges::all_of(key, affinityd::is_digit) ? intruders_interrupt : intruders_other;
}

/// The run time of a thread since its birth.
struct Ran {
    std::uint64_t ns = 0, times = 0;
};

std::optional<Ran> read_ran(const affinityd::host::Dir& proc, const std::string& thread) {
    const auto text = proc.text(thread + "/schedstat");
    const auto words = affinityd::split_words(text ? std::string_view(*text) : std::string_view());
    if (words.size() < 3) return std::nullopt;
    const auto ns = affinityd::parse_number<std::uint64_t>(words[0]);
    const auto times = affinityd::parse_number<std::uint64_t>(words[2]);
    return ns && times ? std::optional(Ran{*ns, *times}) : std::nullopt;
}

/// Seconds since the boot; 0: it cannot be read.
double uptime(const Root& root) {
    return std::strtod(root.proc().text("uptime").value_or("").c_str(), nullptr);
}

class CounterWatch final : public IntruderWatch {
  public:
    CounterWatch(const Root& before, const Root& root, CpuSet cpus)
        : root_(&root), first_(&before), cpus_(std::move(cpus)) {}
    void begin() override {
        before_ = read_threads(*first_);
        interrupts_ = read_counters(*first_, "interrupts");
        softirqs_ = read_counters(*first_, "softirqs");
        began_ = uptime(*first_);
    }
    [[nodiscard]] Result<Intrusions> take() override {
        Intrusions seen{.has_lengths = false};
        seen.seconds = uptime(*root_) - began_;
        const auto after = read_counters(*root_, "interrupts");
        if (after.rows.empty()) return affinityd::fail("the table of interrupts cannot be read");
        if (root_ != first_ && (began_ <= 0 || seen.seconds <= 0))
            return affinityd::fail("the recordings are not of two moments of one run of the machine");
        seen.all = risen_rows(interrupts_, after, cpus_);
        std::ranges::move(risen_rows(softirqs_, read_counters(*root_, "softirqs"), cpus_),
                          std::back_inserter(seen.all));
        for (const auto& [thread, ran] : read_threads(*root_)) {
            const auto old = before_.contains(thread) ? before_.at(thread) : Ran{};
            if (ran.times > old.times || ran.ns > old.ns) add_thread(thread, ran, old, seen);
        }
        return seen;
    }

  private:
    /// {pid, tid} -> its counts
    static std::map<std::pair<int, int>, Ran> read_threads(const Root& root) {
        std::map<std::pair<int, int>, Ran> threads;
        for (const int pid : inventory::list_pids(root).value_or(std::vector<int>{}))
            for (const auto& name :
                 root.proc().list(fmt::format("{}/task", pid)).value_or(std::vector<std::string>{}))
                if (const auto ran = read_ran(root.proc(), fmt::format("{}/task/{}", pid, name)))
                    threads[{pid, affinityd::parse_number<int>(name).value_or(0)}] = *ran;
        return threads;
    }
    /// The kernel tells only where a thread ran last: all counts for that CPU.
    void add_thread(const std::pair<int, int>& thread, const Ran& now, const Ran& old,
                    Intrusions& seen) const {
        const auto [pid, tid] = thread;
        const auto text = root_->proc().text(fmt::format("{}/task/{}/stat", pid, tid));
        const auto line = text ? inventory::parse_stat(*text) : std::nullopt;
        const auto record = text ? inventory::parse_run_record(*text, ::sysconf(_SC_CLK_TCK)) : std::nullopt;
        if (!line || !record || !cpus_.contains(static_cast<unsigned>(record->cpu))) return;
        Intrusion one{.cpu = static_cast<unsigned>(record->cpu),
                      .id = static_cast<unsigned>(tid),
                      .function = {},
                      .count = now.times - old.times,
                      .total_ns = now.ns - old.ns};
        one.task = IntruderTask{.tid = tid,
                                .pid = pid,
                                .name = inventory::unescape_comm(line->comm),
                                .is_kernel = (line->flags & inventory::pf_kthread) != 0,
                                .is_bound = (line->flags & inventory::pf_no_setaffinity) != 0};
        seen.all.push_back(std::move(one));
    }

    const Root *root_, *first_;
    CpuSet cpus_;
    std::map<std::pair<int, int>, Ran> before_;
    CounterTable interrupts_, softirqs_;
    double began_ = 0; ///< seconds after the boot
};

/// {CPU -> clock ticks without work, and all}
std::map<unsigned, std::pair<double, double>> parse_times(std::string_view text) {
    std::map<unsigned, std::pair<double, double>> times;
    for (const auto line : affinityd::split(text, '\n')) {
        const auto words = affinityd::split_words(line);
        if (words.size() < 9 || !words[0].starts_with("cpu")) continue;
        const auto cpu = affinityd::parse_number<unsigned>(words[0].substr(3));
        // user, nice, system, idle, iowait, irq, softirq, steal; the guests' is in the first two
        for (std::size_t at = 1; cpu && at < 9; ++at) {
            auto& [idle, all] = times[*cpu];
            const auto ticks = affinityd::parse_number<std::uint64_t>(words[at]).value_or(0);
            all += static_cast<double>(ticks);
            if (at == 4 || at == 5) idle += static_cast<double>(ticks);
        }
    }
    return times;
}

} // namespace

CounterTable read_counters(const Root& root, const std::string& name) {
    const auto file = root.proc().open_file(name, O_RDONLY | O_CLOEXEC);
    if (!file) return {};
    std::string text;
    std::array<char, 65536> part{};
    for (auto got = ::read(file->get(), part.data(), part.size()); got > 0;
         got = ::read(file->get(), part.data(), part.size()))
        text.append(part.data(), static_cast<std::size_t>(got));
    return parse_counters(text);
}

CounterTable parse_counters(std::string_view text) {
    CounterTable table;
    std::vector<unsigned> cpus;
    for (const auto line : affinityd::split(text, '\n')) {
        const auto words = affinityd::split_words(line);
        if (words.empty()) continue;
        if (cpus.empty()) {
            for (const auto word : words)
                if (const auto cpu =
                        affinityd::parse_number<unsigned>(word.substr(std::min<std::size_t>(3, word.size()))))
                    cpus.push_back(*cpu);
            continue;
        }
        if (!words[0].ends_with(':')) continue;
        auto& row = table.rows[std::string(words[0].substr(0, words[0].size() - 1))];
        std::size_t at = 1;
        for (; at < words.size() && at <= cpus.size(); ++at) {
            const auto count = affinityd::parse_number<std::uint64_t>(words[at]);
            if (!count) break;
            row.counts[cpus[at - 1]] = *count;
        }
        if (at < words.size())
            row.text = line.substr(static_cast<std::size_t>(words[at].data() - line.data()));
    }
    return table;
}

std::vector<Intrusion> risen_rows(const CounterTable& before, const CounterTable& after, const CpuSet& cpus) {
    std::vector<Intrusion> risen;
    for (const auto& [key, row] : after.rows)
        for (const auto& [cpu, count] : row.counts) {
            const auto old = before.rows.find(key);
            const bool is_known = old != before.rows.end() && old->second.counts.contains(cpu);
            const auto was = is_known ? old->second.counts.at(cpu) : 0;
            if (!cpus.contains(cpu) || count <= was) continue;
            Intrusion one{.kind = kind_of_row(key), .cpu = cpu, .function = {}, .count = count - was};
            one.id = affinityd::parse_number<unsigned>(key).value_or(0);
            if (one.kind == intruders_softirq)
                one.id = static_cast<unsigned>(std::ranges::find(softirqs, key) - softirqs.begin());
            if (one.kind == intruders_other) one.function = row.text;
            if (key == "TLB") one.function = "flush_tlb_func";
            risen.push_back(std::move(one));
        }
    return risen;
}

std::map<unsigned, double> busy_between(std::string_view before, std::string_view after) {
    std::map<unsigned, double> busy;
    auto was = parse_times(before);
    for (const auto& [cpu, now] : parse_times(after))
        if (const auto [idle, all] = was[cpu]; now.second > all)
            busy[cpu] = 1 - (now.first - idle) / (now.second - all);
    return busy;
}

std::string softirq_name(unsigned vector) {
    return vector < softirqs.size() ? std::string(softirqs.at(vector)) : std::to_string(vector);
}

std::unique_ptr<IntruderWatch> IntruderWatch::by_counters(const Root& before, const Root& root,
                                                          const CpuSet& cpus) {
    return std::make_unique<CounterWatch>(before, root, cpus);
}

} // namespace affinityctl
