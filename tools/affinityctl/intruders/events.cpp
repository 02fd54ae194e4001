// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/intruders/watch.hpp"
#include "affinityctl/sharers/preempt_count.hpp"
#include "intruders.skel.h"
#include "steer/loading.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace affinityctl {

using affinityd::CpuSet;
using affinityd::Result;
using affinityd::host::Root;

namespace {

/// As in TICK_DEP_MASK_, include/linux/tick.h.
constexpr std::array<const char*, intruders_tick_reasons> tick_reasons{
    "POSIX timers of CPU time", "perf events", "a second runnable task", "an unstable clock", "RCU", "RCU"};

/// As bpf_ktime_get_ns() has it: CLOCK_MONOTONIC.
std::uint64_t monotonic_ns() {
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                      std::chrono::nanoseconds(1));
}

std::string text_in(const char* from, std::size_t most) { return {from, ::strnlen(from, most)}; }

std::optional<IntruderTask> task_of(const intruders_task& task, const affinityd::host::Dir& proc) {
    if ((task.is & intruders_is_known) == 0) return std::nullopt;
    if ((task.is & intruders_is_interrupt) != 0) // the task is a bystander
        return IntruderTask{.name = {}, .cpu = task.cpu, .is_interrupt = true};
    IntruderTask made{.tid = static_cast<int>(task.tid),
                      .pid = static_cast<int>(task.pid),
                      .name = text_in(task.name, sizeof(task.name)),
                      .cpu = task.cpu,
                      .is_kernel = (task.is & intruders_is_kernel) != 0,
                      .is_bound = (task.is & intruders_is_bound) != 0};
    if (made.name.empty()) made.name = proc.text(fmt::format("{}/comm", task.tid)).value_or("");
    return made;
}

class EventWatch final : public IntruderWatch {
  public:
    EventWatch(const Root& root, CpuSet cpus) : root_(&root), cpus_(std::move(cpus)) {}
    ~EventWatch() override {
        for (auto* link : links_)
            bpf_link__destroy(link);
        intruders__destroy(skeleton_); // may be null
    }
    EventWatch(const EventWatch&) = delete;
    EventWatch& operator=(const EventWatch&) = delete;

    Result<void> load() {
        skeleton_ = intruders__open();
        if (skeleton_ == nullptr) return std::unexpected(affinityd::steer::refused_bpf(errno, "tracepoints"));
        skeleton_->rodata->preempt_distance = distance_to_preempt_count();
        leave_out_missing();
        if (const int failed = intruders__load(skeleton_); failed != 0)
            return std::unexpected(
                affinityd::steer::refused_bpf(-failed, "the tracepoint sched:sched_switch"));
        bpf_program* program = nullptr;
        bpf_object__for_each_program(program, skeleton_->obj) {
            if (!bpf_program__autoload(program)) continue;
            if (auto* link = bpf_program__attach(program))
                links_.push_back(link);
            else
                missing_.push_back(name_of(program));
        }
        return {};
    }
    void begin() override {
        interrupts_ = read_counters(*root_, "interrupts");
        began_ = skeleton_->bss->began = monotonic_ns();
        watch(1);
    }
    [[nodiscard]] Result<Intrusions> take() override;

  private:
    static std::string name_of(const bpf_program* program) {
        const std::string section = bpf_program__section_name(program);
        return section.substr(section.find('/') + 1);
    }
    /// The kernel's types name each tracepoint.
    void leave_out_missing() {
        auto* types = btf__load_vmlinux_btf();
        if (types == nullptr) return; // then it is not loaded either
        bpf_program* program = nullptr;
        bpf_object__for_each_program(program, skeleton_->obj) {
            const auto type = "btf_trace_" + name_of(program);
            if (btf__find_by_name_kind(types, type.c_str(), BTF_KIND_TYPEDEF) > 0) continue;
            bpf_program__set_autoload(program, false);
            if (!type.ends_with("_exit")) missing_.push_back(name_of(program));
        }
        btf__free(types);
    }
    void watch(unsigned on) {
        unsigned number = 0;
        for (const unsigned cpu : cpus_) {
            if (cpu >= intruders_most_cpus) break;
            skeleton_->bss->cpus[cpu].is_watched = on;
            skeleton_->bss->listed[number++] = cpu;
        }
        skeleton_->bss->listed_cpus = number;
    }
    void add_running(unsigned cpu, std::uint64_t now, Intrusions& seen) const;

    const Root* root_;
    CpuSet cpus_;
    intruders* skeleton_ = nullptr;
    std::vector<bpf_link*> links_;
    std::vector<std::string> missing_; ///< tracepoints
    CounterTable interrupts_;
    std::uint64_t began_ = 0;
};

/// The thread that has not left the CPU yet.
void EventWatch::add_running(unsigned cpu, std::uint64_t now, Intrusions& seen) const {
    const auto& thread = skeleton_->bss->cpus[cpu].thread;
    const auto task = task_of(thread.by, root_->proc());
    if (thread.start == 0 || thread.id == 0 || !task || now < thread.start + thread.inner) return;
    const auto length = now - thread.start - thread.inner;
    const auto known = std::ranges::find_if(seen.all, [&](const Intrusion& one) {
        return one.kind == intruders_thread && one.cpu == cpu && one.id == thread.id;
    });
    if (known == seen.all.end()) {
        seen.all.push_back({intruders_thread, cpu, thread.id, "", task, 1, length, length});
        seen.all.back().lengths.at(intruders_length_of(length)) = 1;
        return;
    }
    ++known->count;
    ++known->lengths.at(intruders_length_of(length));
    known->total_ns += length;
    known->longest_ns = std::max<std::uint64_t>(known->longest_ns, length);
}

Result<Intrusions> EventWatch::take() {
    watch(0);
    const auto now = monotonic_ns();
    Intrusions seen{.seconds = static_cast<double>(now - began_) / 1e9};
    const auto done = affinityd::steer::read_table<intruders_key, intruders_sum>(
        bpf_map__fd(skeleton_->maps.sums), [&](const intruders_key& key, const intruders_sum& sum) {
            seen.all.push_back({.kind = static_cast<IntruderKind>(key.kind),
                                .cpu = key.cpu,
                                .id = key.id,
                                .function = text_in(sum.function, sizeof(sum.function)),
                                .task = task_of(sum.task, root_->proc()),
                                .count = sum.count,
                                .total_ns = sum.total,
                                .longest_ns = sum.longest,
                                .lengths = std::to_array(sum.lengths)});
        });
    if (!done) return std::unexpected(done.error());
    for (const unsigned cpu : cpus_) {
        if (cpu >= intruders_most_cpus) continue;
        add_running(cpu, now, seen);
        const auto& kept = skeleton_->bss->cpus[cpu].tick_kept;
        if (const auto* most = std::ranges::max_element(kept); *most > 0)
            seen.tick_kept[cpu] = tick_reasons.at(static_cast<std::size_t>(most - std::begin(kept)));
    }
    const auto after = read_counters(*root_, "interrupts");
    for (auto& one : risen_rows(interrupts_, after, cpus_))
        if (one.kind == intruders_other) seen.all.push_back(std::move(one)); // of others there are events
    seen.lost = skeleton_->bss->lost;
    if (!missing_.empty())
        seen.notes.push_back(
            fmt::format("This kernel lacks tracepoints, and what they would tell is left out: {}.",
                        fmt::join(missing_, ", ")));
    return seen;
}

} // namespace

Result<std::unique_ptr<IntruderWatch>> IntruderWatch::by_events(const Root& root, const CpuSet& cpus) {
    if (const auto ready = affinityd::steer::prepare_bpf(root); !ready) return std::unexpected(ready.error());
    auto made = std::make_unique<EventWatch>(root, cpus);
    if (const auto loaded = made->load(); !loaded) return std::unexpected(loaded.error());
    return made;
}

} // namespace affinityctl
