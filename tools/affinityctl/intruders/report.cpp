// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/intruders/report.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace affinityctl {

using affinityd::CpuSet;
using nlohmann::json;

namespace {

constexpr std::size_t most_intruders = 40; // in text
constexpr double loud_sibling = 0.05;

std::string task_words(const IntruderTask& task) {
    return fmt::format("{} {}", task.name.empty() ? "-" : task.name, task.tid);
}

/// The cells of a source.
struct Words {
    std::string kind, source, mend;
};

Words words_of_thread(const Intrusion& one, const IntruderFacts& facts) {
    const auto& task = *one.task;
    const auto source = task_words(task) + (one.function.empty() ? "" : ": " + one.function);
    if (!task.is_kernel)
        return {"thread", source,
                facts.own.contains(task.pid)
                    ? "of the program itself: a thread rule sends it elsewhere"
                    : "exclusive: true in the program's policy, or other cpus in its own"};
    const auto* mend = task.name.starts_with("irq/") ? "move its interrupt, which it follows"
                       : task.is_bound && !task.name.starts_with("kworker/u")
                           ? "the kernel binds it to this CPU: give it less work"
                           : "isolate: true in the program's policy";
    return {"kthread", source, mend};
}

Words words_of_interrupt(const Intrusion& one, const IntruderFacts& facts) {
    const auto found = facts.lines.find(one.id);
    const auto line = found == facts.lines.end() ? HeldLine{.label = "-"} : found->second;
    return {"irq", fmt::format("{} {}", one.id, line.label),
            !line.policy.empty() ? fmt::format("policy {} puts it here", line.policy)
            : line.is_managed    ? "the kernel holds its mask: isolcpus=managed_irq at boot, or fewer queues"
                                 : fmt::format("irqs: [\"{}\"] in a policy for other CPUs", line.label)};
}

constexpr std::array<std::pair<std::string_view, const char*>, 8> softirq_mends{
    {{"NET_RX", "move interrupts and RPS of the NIC, and senders over loopback"},
     {"NET_TX", "move interrupts of the NIC, and senders"},
     {"TIMER", "keep programs off that arm timers here; nohz_full moves others"},
     {"HRTIMER", "keep programs off that arm timers here"},
     {"RCU", "boot with rcu_nocbs= for this CPU"},
     {"SCHED", "the scheduler balances: isolcpus=, or a partition, leaves the CPU out"},
     {"BLOCK", "move interrupts of the disk, and programs that use it"},
     {"TASKLET", "move the interrupt of the driver that raises it"}}};

Words words_of_softirq(const Intrusion& one) {
    const auto name = softirq_name(one.id);
    const auto* mend =
        std::ranges::find(softirq_mends, name, &std::pair<std::string_view, const char*>::first);
    return {"softirq", name,
            mend == softirq_mends.end() ? "the driver whose interrupt comes here raises it" : mend->second};
}

Words words_of_timer(const Intrusion& one, const Intrusions& seen, const IntruderFacts& facts) {
    if (!one.function.starts_with("tick_")) {
        const auto source = one.function.empty() ? "timer interrupt" : one.function;
        if (one.task)
            return {"timer", source,
                    facts.own.contains(one.task->pid) ? "of the program itself"
                                                      : "keep its owner off this CPU"};
        return {"timer", source, "the kernel tells no owner"};
    }
    const auto kept = seen.tick_kept.find(one.cpu);
    return {"tick", "scheduler tick",
            !facts.nohz_full.contains(one.cpu) ? "boot with nohz_full= for this CPU"
            : kept == seen.tick_kept.end()     ? "the kernel tells no reason"
                                               : "kept by " + kept->second};
}

Words words_of_call(const Intrusion& one, const IntruderFacts& facts) {
    Words words{"ipi", "reschedule", "the sender is not known"};
    if (one.kind == intruders_irq_work) words.source = "irq work";
    if (one.kind == intruders_call)
        words.source = one.function.empty() ? "function call" : "call of " + one.function;
    if (!one.task) return words;
    if (one.task->is_interrupt)
        words.mend = "move the interrupts of that CPU: they wake threads here";
    else if (facts.own.contains(one.task->pid))
        words.mend = "the program itself sends it";
    else if (one.kind == intruders_reschedule || one.function == "sched_ttwu_pending")
        words.mend = "it wakes a thread here: keep that thread off";
    else if (one.function == "flush_tlb_func")
        words.mend = "it unmaps or moves memory of a program that ran here";
    else
        words.mend = "it has the kernel ask this CPU";
    return words;
}

Words words_of(const Intrusion& one, const Intrusions& seen, const IntruderFacts& facts) {
    switch (one.kind) {
    case intruders_thread:
        return words_of_thread(one, facts);
    case intruders_interrupt:
        return words_of_interrupt(one, facts);
    case intruders_softirq:
        return words_of_softirq(one);
    case intruders_timer:
        return words_of_timer(one, seen, facts);
    case intruders_nmi:
        return {"nmi", one.function.empty() ? "NMI" : one.function,
                "perf or the watchdog: kernel.nmi_watchdog=0"};
    case intruders_other:
        return {"other", one.function, "the kernel or firmware does it"};
    default:
        return words_of_call(one, facts);
    }
}

/// 12345 -> "12 us"
std::string time_words(std::uint64_t ns) {
    const auto us = static_cast<double>(ns) / 1e3;
    if (us < 9.95) return fmt::format("{:.1f} us", us);
    if (us < 999.5) return fmt::format("{:.0f} us", us);
    return us < 999'500 ? fmt::format("{:.1f} ms", us / 1e3) : fmt::format("{:.2f} s", us / 1e6);
}

std::string time_of(const json& row, const char* key) {
    const auto value = member(row, key);
    return value.is_number() ? time_words(static_cast<std::uint64_t>(value.get<double>() * 1e3)) : "-";
}

std::string from_text(const json& row) {
    if (text(row, "from").empty()) return "-";
    return text(row, "from") + (text(row, "from_cpus").empty() ? "" : " on CPU " + text(row, "from_cpus"));
}

template <std::size_t length>
std::string length_text(const json& row) {
    return std::to_string(row["lengths"].at(length).get<std::uint64_t>());
}

std::string siblings_text(const json& row) {
    if (!member(row, "siblings_busy").is_number()) return "-";
    return fmt::format("{} {:.0f}%", text(row, "siblings"), row["siblings_busy"].get<double>() * 100);
}

// clang-format off
constexpr Field quiet_fields[] = {
    {"cpu", "CPU", "count", "its number"},
    {"program", "PROGRAM", "text?", "the thread that is taken for the program: name and thread id"},
    {"noise_us", "NOISE", "number?", "microseconds that all intruders took; null: not known", {}, [](const json& row) { return time_of(row, "noise_us"); }},
    {"available", "AVAILABLE", "number?", "the share of the time that was left, 0 to 1",
     {}, [](const json& row) { return row["available"].is_null() ? "-" : fmt::format("{:.3f}%", row["available"].get<double>() * 100); }},
    {"longest_us", "LONGEST", "number?", "microseconds of the longest one", {}, [](const json& row) { return time_of(row, "longest_us"); }},
    {"nmi", "NMI", "count", "times that it was interrupted by an NMI"},
    {"irq", "IRQ", "count", "by devices"},
    {"softirq", "SOFTIRQ", "count", "by softirqs"},
    {"timer", "TIMER", "count", "by the tick and other timers"},
    {"ipi", "IPI", "count", "by other CPUs"},
    {"thread", "THREAD", "count", "by other threads"},
    {"lengths", "", "count[]?", "intrusions below 1, 10, 100 us, 1, 10, 100 ms, 1 s, and longer ones; null: not known"},
    {"siblings", "", "cpus", "other CPUs of its core"},
    {"siblings_busy", "SIBLINGS", "number?", "the share of the time that they were busy, 0 to 1", {}, siblings_text},
};
constexpr Field length_fields[] = {
    {"cpu", "CPU", "count", "its number"},
    {"", "<1us", "count", "", {}, length_text<0>},
    {"", "<10us", "count", "", {}, length_text<1>},
    {"", "<100us", "count", "", {}, length_text<2>},
    {"", "<1ms", "count", "", {}, length_text<3>},
    {"", "<10ms", "count", "", {}, length_text<4>},
    {"", "<100ms", "count", "", {}, length_text<5>},
    {"", "<1s", "count", "", {}, length_text<6>},
    {"", "LONGER", "count", "", {}, length_text<7>},
};
constexpr Field intruder_fields[] = {
    {"kind", "KIND", "text", "irq, softirq, tick, timer, ipi, thread, kthread, nmi or other"},
    {"source", "SOURCE", "text", "number and label, vector, function, or name and thread id"},
    {"from", "FROM", "text?", "the sender of an IPI, the owner of a timer", {}, from_text},
    {"from_cpus", "", "cpus", "where it was sent"},
    {"pid", "", "count?", "process of the thread, sender or owner"},
    {"cpus", "CPUS", "cpus", "those that it interrupted"},
    {"count", "COUNT", "count", "times"},
    {"total_us", "TOTAL", "number?", "microseconds; null: not known", {}, [](const json& row) { return time_of(row, "total_us"); }},
    {"longest_us", "LONGEST", "number?", "microseconds of the longest one", {}, [](const json& row) { return time_of(row, "longest_us"); }},
    {"mend", "MEND", "prose", "how to keep it away"},
};
constexpr Field all_intruder_fields[] = {
    {"subject", "", "text", "that was watched"},
    {"cpus", "", "cpus", "its CPUs"},
    {"seconds", "", "number", "that they were watched"},
    {"method", "", "text", "tracepoints, or counters where BPF is not allowed"},
    {"over_us", "", "number?", "the limit of --over"},
    {"above", "", "flag", "an intruder was longer"},
    {"per_cpu", "", "object[]", "the CPUs", quiet_fields},
    {"sources", "", "object[]", "the intruders, longest total first", intruder_fields},
    {"lost", "", "count", "intrusions that found no room in the table"},
    {"notes", "", "text[]", "sentences"},
};
// clang-format on

struct Sum {
    std::uint64_t count = 0, total_ns = 0, longest_ns = 0;
    decltype(Intrusion::lengths) lengths{};
    void add(const Intrusion& one) {
        count += one.count;
        total_ns += one.total_ns;
        longest_ns = std::max(longest_ns, one.longest_ns);
        std::ranges::transform(lengths, one.lengths, lengths.begin(), std::plus{});
    }
};

/// A source, on all CPUs that it interrupted.
struct Intruder {
    Words is;
    std::string from;
    int pid = 0;
    CpuSet from_cpus, cpus;
    Sum sum;
};

struct QuietCpu {
    const Intrusion* program = nullptr;
    std::map<std::string, std::uint64_t> counts; ///< by kind
    Sum sum;
};

struct Findings {
    std::map<unsigned, QuietCpu> cpus;
    std::vector<Intruder> intruders;
    Sum sum;
};

/// The program of each CPU: the thread of an own process, else of any where that is guessed, that ran
/// longest.
void find_programs(const Intrusions& seen, const IntruderFacts& facts, Findings& found) {
    for (const auto& one : seen.all) {
        if (one.kind != intruders_thread || one.task->is_kernel || !facts.cpus.contains(one.cpu)) continue;
        const auto rank = [&](const Intrusion& thread) {
            return std::pair(facts.own.contains(thread.task->pid), thread.total_ns);
        };
        auto& program = found.cpus[one.cpu].program;
        const bool may_be = facts.own.contains(one.task->pid) || facts.guessed.contains(one.cpu);
        if (may_be && (program == nullptr || rank(one) > rank(*program))) program = &one;
    }
}

Findings find_intruders(const Intrusions& seen, const IntruderFacts& facts) {
    Findings found;
    for (const unsigned cpu : facts.cpus)
        found.cpus[cpu] = {};
    find_programs(seen, facts, found);
    auto known = facts; // by name only; other threads of a guessed program are no part of it
    for (const auto& [cpu, quiet] : found.cpus)
        if (quiet.program != nullptr) known.own.insert(quiet.program->task->pid);
    std::map<std::array<std::string, 4>, Intruder> merged;
    for (const auto& one : seen.all) {
        if (!facts.cpus.contains(one.cpu)) continue;
        auto& cpu = found.cpus[one.cpu];
        const bool is_thread = one.kind == intruders_thread;
        if (is_thread && (&one == cpu.program || facts.own.contains(one.task->pid))) continue;
        const auto from = is_thread || !one.task   ? ""
                          : one.task->is_interrupt ? "an interrupt"
                          : one.task->tid == 0     ? "the idle CPU"
                                                   : task_words(*one.task);
        const auto words = words_of(one, seen, known);
        auto& intruder = merged[{words.kind, words.source, from, words.mend}];
        intruder.is = words;
        intruder.from = from;
        if (one.task) intruder.pid = one.task->pid;
        if (!from.empty() && one.kind != intruders_timer) intruder.from_cpus.insert(one.task->cpu);
        intruder.cpus.insert(one.cpu);
        cpu.counts[words.kind] += one.count;
        for (auto* sum : {&intruder.sum, &cpu.sum, &found.sum})
            sum->add(one);
    }
    for (auto& [key, intruder] : merged)
        found.intruders.push_back(std::move(intruder));
    std::ranges::stable_sort(found.intruders, std::greater{},
                             [](const Intruder& one) { return std::pair(one.sum.total_ns, one.sum.count); });
    return found;
}

json microseconds(std::uint64_t ns, bool is_known) {
    return is_known ? json(static_cast<double>(ns) / 1e3) : json();
}

json cpu_value(unsigned number, QuietCpu cpu, const Intrusions& seen, const IntruderFacts& facts) {
    auto& counts = cpu.counts;
    const bool is_known = seen.has_lengths;
    const auto siblings = facts.siblings.contains(number) ? facts.siblings.at(number) : CpuSet{};
    std::optional<double> busy;
    for (const unsigned sibling : siblings)
        if (const auto share = seen.busy.find(sibling); share != seen.busy.end())
            busy = std::max(busy.value_or(0), share->second);
    const auto left = std::max(0.0, 1 - static_cast<double>(cpu.sum.total_ns) / 1e9 / seen.seconds);
    return record(quiet_fields,
                  {number, cpu.program == nullptr ? json() : json(task_words(*cpu.program->task)),
                   microseconds(cpu.sum.total_ns, is_known), is_known ? json(left) : json(),
                   microseconds(cpu.sum.longest_ns, is_known), counts["nmi"], counts["irq"],
                   counts["softirq"], counts["tick"] + counts["timer"], counts["ipi"],
                   counts["thread"] + counts["kthread"], is_known ? json(cpu.sum.lengths) : json(),
                   siblings.to_list(), or_null(busy)});
}

json source_value(const Intruder& one, bool has_lengths) {
    const bool has_total = one.sum.total_ns > 0;
    return record(intruder_fields, {one.is.kind, one.is.source, or_null(one.from), one.from_cpus.to_list(),
                                    one.pid > 0 ? json(one.pid) : json(), one.cpus.to_list(), one.sum.count,
                                    microseconds(one.sum.total_ns, has_total),
                                    microseconds(one.sum.longest_ns, has_lengths && has_total), one.is.mend});
}

std::vector<std::string> notes_about(const Intrusions& seen, const json& cpus, bool is_quiet) {
    auto notes = seen.notes;
    if (seen.lost > 0)
        notes.push_back(affinityd::counted(seen.lost, "interruption") + " found no room in the table.");
    for (const auto& cpu : cpus)
        if (cpu["siblings_busy"].is_number() && cpu["siblings_busy"] > loud_sibling)
            notes.push_back(fmt::format("CPU {} shares its core with {}, which was busy {:.0f} % of the "
                                        "time: smt: avoid in the policy keeps that free.",
                                        count(cpu, "cpu"), text(cpu, "siblings"),
                                        cpu["siblings_busy"].get<double>() * 100));
    if (is_quiet) notes.emplace_back("Nothing interrupted these CPUs.");
    return notes;
}

} // namespace

const Fields intruders_answer = all_intruder_fields;

Document intruders_document(const Intrusions& seen, const IntruderFacts& facts,
                            std::optional<std::chrono::nanoseconds> over) {
    const auto found = find_intruders(seen, facts);
    const auto limit = over ? static_cast<std::uint64_t>(over->count()) : 0;
    const bool is_above = over && found.sum.longest_ns > limit;
    Document document;
    Document::Table cpus{.fields = quiet_fields}, sources{.fields = intruder_fields};
    for (const auto& [number, cpu] : found.cpus)
        cpus.rows.push_back(cpu_value(number, cpu, seen, facts));
    for (const auto& one : found.intruders)
        sources.rows.push_back(source_value(one, seen.has_lengths));
    const auto notes = notes_about(seen, cpus.rows, sources.rows.empty());
    document.value = record(all_intruder_fields, {facts.subject, facts.cpus.to_list(), seen.seconds,
                                                  seen.has_lengths ? "tracepoints" : "counters",
                                                  over ? microseconds(limit, true) : json(), is_above,
                                                  cpus.rows, sources.rows, seen.lost, notes});
    document.by_columns = true;
    document.line(fmt::format(
        "{:.1f} s of {}: {}", seen.seconds, facts.subject,
        affinityd::counted(sources.rows.size(), "source of interruptions", "sources of interruptions")));
    document.add(cpus).gap = true;
    const auto more = sources.rows.size() - std::min(sources.rows.size(), most_intruders);
    sources.rows.erase(sources.rows.end() - static_cast<std::ptrdiff_t>(more), sources.rows.end());
    const bool has_sources = !sources.rows.empty();
    if (has_sources) document.add(std::move(sources)).gap = true;
    if (more > 0) document.line(fmt::format("and {} more", more));
    if (seen.has_lengths && has_sources)
        document.add(Document::Table{.fields = length_fields, .rows = cpus.rows}).gap = true;
    for (const auto& note : notes)
        document.line(note).gap = &note == &notes.front();
    if (!is_above) return document;
    document.complaints.push_back(fmt::format("affinityctl: the longest interruption took {}, more than {}",
                                              time_words(found.sum.longest_ns), time_words(limit)));
    document.code = exit_findings;
    return document;
}

} // namespace affinityctl
