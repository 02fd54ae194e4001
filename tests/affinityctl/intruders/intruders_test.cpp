// SPDX-License-Identifier: Apache-2.0
// Counts become lines: who is an intruder, where it came from, what keeps it away.
#include "affinityctl/intruders/report.hpp"

#include <gtest/gtest.h>

namespace affinityctl {
namespace {

using affinityd::CpuSet;
using nlohmann::json;

constexpr std::uint64_t us = 1000, ms = 1'000'000;

IntruderTask task(int tid, std::string name, int pid = 0) {
    return {.tid = tid, .pid = pid == 0 ? tid : pid, .name = std::move(name)};
}

IntruderTask kernel_thread(int tid, std::string name, bool is_bound) {
    auto made = task(tid, std::move(name));
    made.is_kernel = true;
    made.is_bound = is_bound;
    return made;
}

Intrusion thread(unsigned cpu, IntruderTask who, std::uint64_t total, std::uint64_t longest = 0) {
    const auto id = static_cast<unsigned>(who.tid);
    return {intruders_thread, cpu, id, "", std::move(who), 1, total, longest == 0 ? total : longest};
}

Intrusion event(intruders_kind kind, unsigned cpu, unsigned id, std::string function = {},
                std::optional<IntruderTask> by = {}, std::uint64_t total = 5 * us) {
    return {kind, cpu, id, std::move(function), std::move(by), 2, total, total};
}

IntruderFacts facts_of(const CpuSet& cpus, std::set<int> own = {}) {
    IntruderFacts facts{.subject = "here", .cpus = cpus, .own = std::move(own)};
    if (facts.own.empty()) facts.guessed = cpus;
    return facts;
}

json judged(std::vector<Intrusion> all, const IntruderFacts& facts, Intrusions seen = {.seconds = 1}) {
    seen.all = std::move(all);
    return intruders_document(seen, facts, std::nullopt).value;
}

/// kind, source, from and mend of the only source.
std::vector<std::string> only(const json& value) {
    EXPECT_EQ(value["sources"].size(), 1U) << value;
    const auto& source = value["sources"].at(0);
    return {text(source, "kind"), text(source, "source"), text(source, "from"), text(source, "mend")};
}

using Cells = std::vector<std::string>;

TEST(Intruders, ThreadThatRanLongestIsTheProgramWhereNoneIsNamed) {
    const auto value = judged({thread(1, task(10, "web"), 900 * ms), thread(1, task(11, "cron"), 2 * ms),
                               thread(1, kernel_thread(12, "busy", true), 950 * ms)},
                              facts_of({1}));
    EXPECT_EQ(value["per_cpu"][0]["program"], "web 10");
    EXPECT_EQ(value["sources"].size(), 2U);
    EXPECT_EQ(value["sources"][1]["source"], "cron 11");
    EXPECT_EQ(value["sources"][1]["pid"], 11);
}

TEST(Intruders, OtherThreadsOfAGuessedProgramAreSomeAndSaidToBeItsOwn) {
    const auto value =
        judged({thread(1, task(10, "web"), 900 * ms), thread(1, task(13, "logger", 10), ms)}, facts_of({1}));
    EXPECT_EQ(only(value),
              (Cells{"thread", "logger 13", "", "of the program itself: a thread rule sends it elsewhere"}));
}

TEST(Intruders, ThreadsOfThePolicyAreAtHomeAndAStrangerThatRanLongerIsNone) {
    const auto value = judged({thread(1, task(10, "web"), ms), thread(1, task(13, "logger", 10), 2 * ms),
                               thread(1, task(20, "stress"), 900 * ms)},
                              facts_of({1}, {10}));
    EXPECT_EQ(value["per_cpu"][0]["program"], "logger 13");
    EXPECT_EQ(only(value)[1], "stress 20");
    EXPECT_EQ(value["per_cpu"][0]["thread"], 1);
}

TEST(Intruders, CpuWithoutTheProgramHasNoneUnlessItIsGuessed) {
    auto facts = facts_of({1, 2}, {10});
    facts.guessed = {2};
    const auto value = judged({thread(1, task(20, "stress"), ms), thread(2, task(21, "trader"), ms)}, facts);
    EXPECT_TRUE(value["per_cpu"][0]["program"].is_null());
    EXPECT_EQ(value["per_cpu"][1]["program"], "trader 21");
    EXPECT_EQ(only(value)[1], "stress 20");
}

TEST(Intruders, SourceOnSeveralCpusIsOneLineLongestTotalFirst) {
    const auto value =
        judged({event(intruders_softirq, 1, 3), event(intruders_softirq, 2, 3),
                event(intruders_softirq, 1, 9, "", {}, 8 * us), event(intruders_softirq, 5, 9)},
               facts_of({1, 2}));
    ASSERT_EQ(value["sources"].size(), 2U);
    const auto& first = value["sources"][0];
    EXPECT_EQ(first["source"], "NET_RX");
    EXPECT_EQ(first["cpus"], "1-2");
    EXPECT_EQ(first["count"], 4);
    EXPECT_EQ(first["total_us"], 10);
    EXPECT_EQ(first["longest_us"], 5);
    EXPECT_EQ(value["sources"][1]["cpus"], "1");
    EXPECT_EQ(value["per_cpu"][0]["noise_us"], 13);
    EXPECT_EQ(value["per_cpu"][0]["longest_us"], 8);
    EXPECT_DOUBLE_EQ(value["per_cpu"][0]["available"].get<double>(), 1 - 13e-6);
}

TEST(Intruders, InterruptNamesWhoHoldsItsMask) {
    auto facts = facts_of({1});
    facts.lines[36] = {"eth0-rx-1", "web", false};
    facts.lines[37] = {"nvme0q1", "", true};
    facts.lines[38] = {"eth0-rx-2", "", false};
    EXPECT_EQ(only(judged({event(intruders_interrupt, 1, 36)}, facts)),
              (Cells{"irq", "36 eth0-rx-1", "", "policy web puts it here"}));
    EXPECT_EQ(only(judged({event(intruders_interrupt, 1, 37)}, facts))[3],
              "the kernel holds its mask: isolcpus=managed_irq at boot, or fewer queues");
    EXPECT_EQ(only(judged({event(intruders_interrupt, 1, 38)}, facts))[3],
              "irqs: [\"eth0-rx-2\"] in a policy for other CPUs");
    EXPECT_EQ(only(judged({event(intruders_interrupt, 1, 39)}, facts))[1], "39 -");
}

TEST(Intruders, TickHasAReasonWhereItCouldHaveStopped) {
    auto facts = facts_of({1, 2, 3});
    facts.nohz_full = {2, 3};
    Intrusions seen{.seconds = 1};
    seen.tick_kept[3] = "a second runnable task";
    for (const auto& [cpu, mend] : {std::pair(1U, "boot with nohz_full= for this CPU"),
                                    {2U, "the kernel tells no reason"},
                                    {3U, "kept by a second runnable task"}})
        EXPECT_EQ(only(judged({event(intruders_timer, cpu, 0, "tick_nohz_handler")}, facts, seen)),
                  (Cells{"tick", "scheduler tick", "", mend}));
}

TEST(Intruders, TimerHasAnOwner) {
    EXPECT_EQ(
        only(judged({event(intruders_timer, 1, 0, "posix_timer_fn", task(10, "web"))}, facts_of({1}, {10}))),
        (Cells{"timer", "posix_timer_fn", "web 10", "of the program itself"}));
    EXPECT_EQ(only(judged({event(intruders_timer, 1, 0, "hrtimer_wakeup", task(20, "cron"))},
                          facts_of({1}, {10})))[3],
              "keep its owner off this CPU");
    EXPECT_EQ(only(judged({event(intruders_timer, 1, 0)}, facts_of({1}))),
              (Cells{"timer", "timer interrupt", "", "the kernel tells no owner"}));
}

TEST(Intruders, IpiHasASenderFromSeveralCpus) {
    auto one = task(20, "java"), other = task(20, "java");
    one.cpu = 4;
    other.cpu = 6;
    const auto value = judged({event(intruders_call, 1, 0, "flush_tlb_func", one),
                               event(intruders_call, 1, 0, "flush_tlb_func", other)},
                              facts_of({1}, {10}));
    EXPECT_EQ(only(value), (Cells{"ipi", "call of flush_tlb_func", "java 20",
                                  "it unmaps or moves memory of a program that ran here"}));
    EXPECT_EQ(value["sources"][0]["from_cpus"], "4,6");
    EXPECT_EQ(value["per_cpu"][0]["ipi"], 4);
}

TEST(Intruders, IpiOfTheProgramOfAnInterruptAndOfNobody) {
    const auto facts = facts_of({1}, {10});
    EXPECT_EQ(only(judged({event(intruders_call, 1, 0, "ipi_mb", task(14, "main", 10))}, facts))[3],
              "the program itself sends it");
    EXPECT_EQ(
        only(judged({event(intruders_reschedule, 1, 0, "", IntruderTask{.cpu = 3, .is_interrupt = true})},
                    facts)),
        (Cells{"ipi", "reschedule", "an interrupt",
               "move the interrupts of that CPU: they wake threads here"}));
    EXPECT_EQ(only(judged({event(intruders_irq_work, 1, 0)}, facts)),
              (Cells{"ipi", "irq work", "", "the sender is not known"}));
    EXPECT_EQ(only(judged({event(intruders_reschedule, 1, 0, "", task(0, "swapper/3"))}, facts))[2],
              "the idle CPU");
    EXPECT_EQ(only(judged({event(intruders_call, 1, 0, "sched_ttwu_pending", task(20, "java"))}, facts))[3],
              "it wakes a thread here: keep that thread off");
}

TEST(Intruders, KernelThreadSaysWhetherItCanBeMoved) {
    auto worker = thread(1, kernel_thread(30, "kworker/u8:1", false), ms);
    worker.function = "wb_workfn";
    EXPECT_EQ(only(judged({worker}, facts_of({1}))),
              (Cells{"kthread", "kworker/u8:1 30: wb_workfn", "", "isolate: true in the program's policy"}));
    EXPECT_EQ(only(judged({thread(1, kernel_thread(31, "rcuop/1", false), ms)}, facts_of({1})))[3],
              "isolate: true in the program's policy");
    EXPECT_EQ(only(judged({thread(1, kernel_thread(32, "ksoftirqd/1", true), ms)}, facts_of({1})))[3],
              "the kernel binds it to this CPU: give it less work");
    EXPECT_EQ(only(judged({thread(1, kernel_thread(33, "irq/36-eth0", false), ms)}, facts_of({1})))[3],
              "move its interrupt, which it follows");
}

TEST(Intruders, BusySiblingIsTold) {
    auto facts = facts_of({1});
    facts.siblings[1] = {5};
    Intrusions seen{.seconds = 1};
    seen.busy = {{1, 1.0}, {5, 0.5}};
    const auto value = judged({}, facts, seen);
    EXPECT_EQ(value["per_cpu"][0]["siblings"], "5");
    EXPECT_EQ(value["per_cpu"][0]["siblings_busy"], 0.5);
    EXPECT_EQ(value["notes"][0],
              "CPU 1 shares its core with 5, which was busy 50 % of the time: smt: avoid in the "
              "policy keeps that free.");
    EXPECT_EQ(value["notes"][1], "Nothing interrupted these CPUs.");
}

TEST(Intruders, LimitIsForTheLongestSingleOne) {
    Intrusions seen{.seconds = 1};
    seen.all = {thread(1, task(10, "web"), 900 * ms, 800 * ms), thread(1, task(11, "cron"), ms, 21 * us)};
    const auto facts = facts_of({1});
    const auto above = intruders_document(seen, facts, std::chrono::microseconds(20));
    EXPECT_EQ(above.code, exit_findings);
    EXPECT_EQ(above.value["above"], true);
    EXPECT_EQ(above.complaints.at(0), "affinityctl: the longest interruption took 21 us, more than 20 us");
    EXPECT_EQ(intruders_document(seen, facts, std::chrono::microseconds(21)).code, exit_ok);
    EXPECT_EQ(intruders_document(seen, facts, {}).code, exit_ok);
}

TEST(Intruders, CountersTellNoLengths) {
    Intrusions seen{.seconds = 1, .has_lengths = false};
    auto stranger = thread(1, task(11, "cron"), ms);
    stranger.longest_ns = 0;
    const auto value =
        judged({stranger, event(intruders_softirq, 1, 3, "", {}, 0)}, facts_of({1}, {10}), seen);
    EXPECT_EQ(value["method"], "counters");
    EXPECT_EQ(value["sources"][0]["total_us"], 1000);
    EXPECT_TRUE(value["sources"][0]["longest_us"].is_null());
    EXPECT_TRUE(value["sources"][1]["total_us"].is_null());
    EXPECT_TRUE(value["per_cpu"][0]["noise_us"].is_null());
}

constexpr auto before =
    "            CPU0       CPU2\n 24:  1  10  IO-APIC 5-edge  ACPI:Ged\nLOC:  5  7   Local timer "
    "interrupts\nMCP:  1  1   Machine check polls\nERR:  0\n";
constexpr auto after = "            CPU0       CPU2\n 24:  9  12  IO-APIC 5-edge  ACPI:Ged\n 30:  0  4  MSI  "
                       "new\nLOC:  6  9   Local timer "
                       "interrupts\nTLB:  0  1   TLB shootdowns\nMCP:  2  2   Machine check polls\nERR:  0\n";

TEST(Counters, RowsThatRoseOnTheseCpus) {
    const auto rows = [](const std::vector<Intrusion>& risen) {
        std::vector<std::tuple<intruders_kind, unsigned, std::string, std::uint64_t>> made;
        for (const auto& one : risen) {
            EXPECT_EQ(one.cpu, 2U);
            made.emplace_back(one.kind, one.id, one.function, one.count);
        }
        return made;
    };
    EXPECT_EQ(rows(risen_rows(parse_counters(before), parse_counters(after), {2})),
              (decltype(rows({})){{intruders_interrupt, 24, "", 2},
                                  {intruders_interrupt, 30, "", 4},
                                  {intruders_timer, 0, "", 2},
                                  {intruders_other, 0, "Machine check polls", 1},
                                  {intruders_call, 0, "flush_tlb_func", 1}}));
    EXPECT_EQ(rows(risen_rows(parse_counters("CPU0 CPU2\n RCU: 1 1\n"),
                              parse_counters("CPU0 CPU2\n RCU: 9 4\n"), {2})),
              (decltype(rows({})){{intruders_softirq, 9, "", 3}}));
}

TEST(Counters, BusyShareOfEachCpu) {
    const auto busy = busy_between(
        "cpu  9 9 9 9 9 9 9 9\ncpu0 10 0 10 80 0 0 0 0 0 0\ncpu1 0 0 0 100 0 0 0 0 0 0\nintr 5\n",
        "cpu  9 9 9 9 9 9 9 9\ncpu0 20 0 20 150 10 0 0 0 0 0\ncpu1 0 0 0 100 0 0 0 0 0 0\nintr 6\n");
    ASSERT_EQ(busy.size(), 1U);
    EXPECT_DOUBLE_EQ(busy.at(0), 0.2);
}

} // namespace
} // namespace affinityctl
