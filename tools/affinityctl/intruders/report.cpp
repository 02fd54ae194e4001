// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/intruders/report.hpp"

#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace affinityctl {

using affinityd::CpuSet;
using affinityd::grouped;
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
    const auto mend = task.name.starts_with("kworker/u")
                          ? "take the CPU out of /sys/devices/virtual/workqueue/cpumask"
                      : task.name.starts_with("irq/") ? "move its interrupt, which it follows"
                      : task.is_bound                 ? "the kernel binds it to this CPU: give it less work"
                                                      : fmt::format("taskset -cp CPUS {}", task.tid);
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
    if (one.kind == IntruderKind::irq_work) words.source = "irq work";
    if (one.kind == IntruderKind::call)
        words.source = one.function.empty() ? "function call" : "call of " + one.function;
    if (!one.task) return words;
    if (one.task->is_interrupt)
        words.mend = "move the interrupts of that CPU: they wake threads here";
    else if (facts.own.contains(one.task->pid))
        words.mend = "the program itself sends it";
    else if (one.kind == IntruderKind::reschedule)
        words.mend = "it wakes a thread here: keep that thread off";
    else if (one.function == "flush_tlb_func")
        words.mend = "it unmaps memory of a program that ran here";
    else
        words.mend = "it has the kernel ask this CPU";
    return words;
}

Words words_of(const Intrusion& one, const Intrusions& seen, const IntruderFacts& facts) {
    switch (one.kind) {
    case IntruderKind::thread:
        return words_of_thread(one, facts);
    case IntruderKind::interrupt:
        return words_of_interrupt(one, facts);
    case IntruderKind::softirq:
        return words_of_softirq(one);
    case IntruderKind::timer:
        return words_of_timer(one, seen, facts);
    case IntruderKind::nmi:
        return {"nmi", one.function.empty() ? "NMI" : one.function,
                "perf or the watchdog: kernel.nmi_watchdog=0"};
    case IntruderKind::other:
        return {"other", one.function, "the kernel or firmware does it"};
    default:
        return words_of_call(one, facts);
    }
}

/// The thread that is the program of each CPU: of own processes, else of any user, the one that ran longest.
std::map<unsigned, const Intrusion*> find_programs(const Intrusions& seen, const IntruderFacts& facts) {
    std::map<unsigned, const Intrusion*> programs;
    const auto take = [&](const auto& may_be) {
        std::map<unsigned, const Intrusion*> found;
        for (const auto& one : seen.all)
            if (one.kind == IntruderKind::thread && one.task && !one.task->is_kernel && may_be(one)) {
                const auto*& best = found[one.cpu];
                if (best == nullptr || one.total_ns > best->total_ns) best = &one;
            }
        programs.merge(found);
    };
    take([&](const Intrusion& one) { return facts.own.contains(one.task->pid); });
    take([&](const Intrusion& one) { return facts.guessed.contains(one.cpu); });
    return programs;
}

/// A thread of an own process, or the program that was guessed.
bool is_at_home(const Intrusion& one, const Intrusion* program, const IntruderFacts& facts) {
    if (one.kind != IntruderKind::thread) return false;
    return &one == program || (one.task && facts.own.contains(one.task->pid));
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
    {"siblings", "", "cpus", "other CPUs of its core"},
    {"siblings_busy", "SIBLINGS", "number?", "the share of the time that they were busy, 0 to 1", {}, siblings_text},
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

json microseconds(std::uint64_t ns, bool is_known) {
    return is_known ? json(static_cast<double>(ns) / 1e3) : json();
}

json cpu_value(const QuietCpu& cpu, const Intrusions& seen, const IntruderFacts& facts) {
    const auto number = [&](std::initializer_list<const char*> kinds) {
        std::uint64_t sum = 0;
        for (const auto* kind : kinds)
            if (const auto found = cpu.counts.find(kind); found != cpu.counts.end()) sum += found->second;
        return sum;
    };
    const auto found = facts.siblings.find(cpu.cpu);
    const auto siblings = found == facts.siblings.end() ? CpuSet{} : found->second;
    json busy;
    for (const unsigned sibling : siblings)
        if (const auto share = seen.busy.find(sibling); share != seen.busy.end())
            busy = std::max(busy.is_null() ? 0.0 : busy.get<double>(), share->second);
    const auto noise = static_cast<double>(cpu.noise_ns) / 1e9;
    return record(
        quiet_fields,
        {cpu.cpu, or_null(cpu.program), microseconds(cpu.noise_ns, seen.has_lengths),
         seen.has_lengths && seen.seconds > 0 ? json(std::max(0.0, 1 - noise / seen.seconds)) : json(),
         microseconds(cpu.longest_ns, seen.has_lengths), number({"nmi"}), number({"irq"}),
         number({"softirq"}), number({"tick", "timer"}), number({"ipi"}), number({"thread", "kthread"}),
         siblings.to_list(), std::move(busy)});
}

json source_value(const Intruder& one, bool has_lengths) {
    const bool has_total = has_lengths || one.total_ns > 0;
    return record(intruder_fields,
                  {one.kind, one.source, or_null(one.from), one.from_cpus.to_list(),
                   one.pid > 0 ? json(one.pid) : json(), one.cpus.to_list(), one.count,
                   microseconds(one.total_ns, has_total && one.kind != "other"),
                   microseconds(one.longest_ns, has_lengths && one.kind != "other"), one.mend});
}

std::vector<std::string> notes_about(const Intrusions& seen, const IntruderReport& report, const json& cpus) {
    auto notes = seen.notes;
    if (seen.lost > 0)
        notes.push_back(affinityd::counted(seen.lost, "intrusion") +
                        " found no room in the table and are left out.");
    for (const auto& cpu : cpus)
        if (cpu["siblings_busy"].is_number() && cpu["siblings_busy"] > loud_sibling)
            notes.push_back(fmt::format("CPU {} shares its core with {}, which was busy {:.0f} % of the "
                                        "time: smt: avoid in the policy keeps that free.",
                                        count(cpu, "cpu"), text(cpu, "siblings"),
                                        cpu["siblings_busy"].get<double>() * 100));
    if (report.intruders.empty()) notes.emplace_back("Nothing interrupted these CPUs.");
    return notes;
}

} // namespace

const Fields intruders_answer = all_intruder_fields;

IntruderReport find_intruders(const Intrusions& seen, const IntruderFacts& facts) {
    IntruderReport report;
    const auto programs = find_programs(seen, facts);
    std::map<unsigned, QuietCpu> cpus;
    for (const unsigned cpu : facts.cpus) {
        cpus[cpu].cpu = cpu;
        if (const auto program = programs.find(cpu); program != programs.end())
            cpus[cpu].program = task_words(*program->second->task);
    }
    std::map<std::tuple<std::string, std::string, std::string, std::string>, Intruder> merged;
    for (const auto& one : seen.all) {
        const auto program = programs.find(one.cpu);
        if (!facts.cpus.contains(one.cpu) ||
            is_at_home(one, program == programs.end() ? nullptr : program->second, facts))
            continue;
        const bool has_from = one.task && one.kind != IntruderKind::thread;
        const auto from = !has_from                ? ""
                          : one.task->is_interrupt ? "an interrupt"
                          : one.task->tid == 0     ? "the idle CPU"
                                                   : task_words(*one.task);
        const auto [kind, source, mend] = words_of(one, seen, facts);
        auto& intruder =
            merged.try_emplace({kind, source, from, mend}, Intruder{kind, source, from, mend}).first->second;
        if (one.task) intruder.pid = one.task->pid;
        if (has_from && one.kind != IntruderKind::timer) intruder.from_cpus.insert(one.task->cpu);
        intruder.cpus.insert(one.cpu);
        intruder.count += one.count;
        intruder.total_ns += one.total_ns;
        intruder.longest_ns = std::max(intruder.longest_ns, one.longest_ns);
        auto& cpu = cpus[one.cpu];
        cpu.counts[kind] += one.count;
        cpu.noise_ns += one.total_ns;
        cpu.longest_ns = std::max(cpu.longest_ns, one.longest_ns);
        report.longest_ns = std::max(report.longest_ns, one.longest_ns);
    }
    for (auto& [key, intruder] : merged)
        report.intruders.push_back(std::move(intruder));
    std::ranges::stable_sort(report.intruders, [](const Intruder& one, const Intruder& other) {
        return std::pair(one.total_ns, one.count) > std::pair(other.total_ns, other.count);
    });
    for (auto& [number, cpu] : cpus)
        report.cpus.push_back(std::move(cpu));
    return report;
}

Document intruders_document(const Intrusions& seen, const IntruderFacts& facts,
                            std::optional<std::chrono::nanoseconds> over) {
    const auto report = find_intruders(seen, facts);
    const bool is_above = over && report.longest_ns > static_cast<std::uint64_t>(over->count());
    json cpus = json::array(), sources = json::array();
    for (const auto& cpu : report.cpus)
        cpus.push_back(cpu_value(cpu, seen, facts));
    for (const auto& one : report.intruders)
        sources.push_back(source_value(one, seen.has_lengths));
    const auto notes = notes_about(seen, report, cpus);
    Document document;
    document.by_columns = true;
    document.line(fmt::format(
        "{:.1f} s of {}: {}", seen.seconds, facts.subject,
        affinityd::counted(report.intruders.size(), "source of interruptions", "sources of interruptions")));
    const bool has_siblings =
        std::ranges::any_of(cpus, [](const json& cpu) { return cpu["siblings_busy"].is_number(); });
    Document::Table table{.fields = quiet_fields, .rows = cpus};
    table.columns = {"CPU", "PROGRAM", "NOISE", "AVAILABLE", "LONGEST", "NMI",
                     "IRQ", "SOFTIRQ", "TIMER", "IPI",       "THREAD"};
    if (has_siblings) table.columns.emplace_back("SIBLINGS");
    document.add(std::move(table)).gap = true;
    if (!sources.empty()) {
        Document::Table lines{.fields = intruder_fields};
        for (std::size_t at = 0; at < std::min(sources.size(), most_intruders); ++at)
            lines.rows.push_back(sources[at]);
        document.add(std::move(lines)).gap = true;
    }
    if (sources.size() > most_intruders)
        document.line(fmt::format("and {} more", grouped(sources.size() - most_intruders)));
    for (const auto& note : notes)
        document.line(note).gap = &note == &notes.front();
    if (is_above)
        document.complaints.push_back(fmt::format(
            "affinityctl: the longest interruption took {}, more than {}", time_words(report.longest_ns),
            time_words(static_cast<std::uint64_t>(over->count()))));
    document.code = is_above ? exit_findings : exit_ok;
    document.value =
        record(all_intruder_fields, {facts.subject, facts.cpus.to_list(), seen.seconds,
                                     seen.has_lengths ? "tracepoints" : "counters",
                                     over ? json(static_cast<double>(over->count()) / 1e3) : json(), is_above,
                                     std::move(cpus), std::move(sources), seen.lost, notes});
    return document;
}

} // namespace affinityctl
