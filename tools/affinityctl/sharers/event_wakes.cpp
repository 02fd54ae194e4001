// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/sharers/bpf/wakes.h"
#include "affinityctl/sharers/preempt_count.hpp"
#include "affinityctl/sharers/watch.hpp"
#include "base/error.hpp"
#include "host/fd.hpp"
#include "steer/loading.hpp"
#include "wakes.skel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace affinityctl {

using affinityd::fail;
using affinityd::Result;
using affinityd::TaskId;
using affinityd::steer::prepare_bpf;
using affinityd::steer::read_table;
using affinityd::steer::refused_bpf;

namespace {

struct BtfEnd {
    void operator()(btf* types) const { btf__free(types); }
};

// Wake-ups that this program makes of itself, so that it can be seen whether they are counted as what they
// are. A few are not made: a thread that has not slept yet is not woken.
constexpr int known_by_task = 40; // this thread and another one wake each other so often at most
constexpr int known_by_timer = 6; // and a timer wakes the other one so often

/// The thread id of the other one. Takes some milliseconds. An Error: no thread, or no pipe.
Result<int> make_known_wakes() {
    std::array<std::array<int, 2>, 2> ends{}; // there and back
    std::array<affinityd::host::Fd, 4> fds;
    for (std::size_t i = 0; i < ends.size(); ++i) {
        if (::pipe2(ends.at(i).data(), O_CLOEXEC) != 0) return fail("cannot make a pipe", {}, errno);
        fds.at(2 * i) = affinityd::host::Fd(ends.at(i)[0]);
        fds.at(2 * i + 1) = affinityd::host::Fd(ends.at(i)[1]);
    }
    // False: the other end is closed.
    const auto comes = [](const affinityd::host::Fd& from) {
        char byte = 0;
        return ::read(from.get(), &byte, 1) == 1;
    };
    const auto goes = [](const affinityd::host::Fd& to) { return ::write(to.get(), "", 1) == 1; };
    std::atomic<int> tid = 0;
    try {
        std::thread other([&] {
            tid = ::gettid();
            while (comes(fds[0]) && goes(fds[3])) {
            }
            for (int i = 0; i < known_by_timer; ++i)
                std::this_thread::sleep_for(std::chrono::microseconds(200));
        });
        for (int i = 0; i < known_by_task / 2 && goes(fds[1]) && comes(fds[2]); ++i) {
        }
        fds[1].reset();
        other.join();
    } catch (const std::system_error& error) {
        return fail("cannot make a thread", {}, error.code().value());
    }
    return tid.load();
}

/// The clock ticks of /proc/PID/stat for nanoseconds since boot.
std::uint64_t ticks_of(std::uint64_t nanoseconds) {
    static const auto tick = 1'000'000'000ULL / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
    return nanoseconds / tick;
}

TaskId id_of(unsigned tid, std::uint64_t born) { return {static_cast<int>(tid), ticks_of(born)}; }

void add_pair(const sharers_pair& pair, std::uint64_t times, Wakes& seen) {
    const auto waker = id_of(pair.waker, pair.waker_born), wakee = id_of(pair.wakee, pair.wakee_born);
    seen.threads.try_emplace(waker);
    seen.threads.try_emplace(wakee);
    seen.pairs[{waker, wakee}] += times;
}

/// At least a part of the wake-ups that are known must be seen as what they are, and none as something else.
Result<void> check_known(const Wakes& seen, int other) {
    std::uint64_t between = 0, by_timers = 0;
    for (const auto& [pair, times] : seen.pairs)
        if (pair.first.tid == other || pair.second.tid == other) between += times;
    for (const auto& [id, thread] : seen.threads)
        if (id.tid == other) by_timers += thread.by_interrupts;
    // Two more: the end of the pipe, and that of the thread.
    if (between >= known_by_task / 4 && between <= known_by_task + 3 && by_timers >= known_by_timer - 2)
        return {};
    return fail(fmt::format(
        "this kernel does not tell wake-ups that interrupts raise from those that tasks raise (of {} by "
        "tasks {} were seen as such, of {} by timers {})",
        known_by_task, between, known_by_timer, by_timers));
}

class KernelWakes final : public EventWakes {
  public:
    ~KernelWakes() override {
        if (skeleton_ != nullptr) sharers_wakes__destroy(skeleton_);
    }
    KernelWakes() = default;
    KernelWakes(const KernelWakes&) = delete;
    KernelWakes& operator=(const KernelWakes&) = delete;

    Result<void> load() {
        skeleton_ = sharers_wakes__open();
        int code = skeleton_ == nullptr ? errno : 0;
        if (code == 0) {
            skeleton_->rodata->preempt_distance = distance_to_preempt_count();
            code = -sharers_wakes__load(skeleton_);
        }
        if (code == 0) code = -sharers_wakes__attach(skeleton_);
        if (code == 0) return {};
        return std::unexpected(refused_bpf(code, "the tracepoint sched:sched_waking"));
    }
    void watch(int pid) override { skeleton_->bss->watched = pid; }
    [[nodiscard]] Result<Wakes> take() const override;

  private:
    sharers_wakes* skeleton_ = nullptr;
};

Result<Wakes> KernelWakes::take() const {
    Wakes seen;
    seen.lost = skeleton_->bss->lost;
    for (const auto& cpu : skeleton_->bss->cpus)
        for (const auto& place : cpu.places) // memory that is shared with the kernel
            if (place.times > 0) add_pair(place.pair, place.times, seen);
    const auto& maps = skeleton_->maps;
    const auto facts = read_table<sharers_thread, sharers_facts>(
        bpf_map__fd(maps.threads), [&](const sharers_thread& thread, const sharers_facts& known) {
            auto& woken = seen.threads[id_of(thread.tid, thread.born)];
            woken.name.assign(known.name, ::strnlen(known.name, sizeof(known.name)));
            woken.by_interrupts = known.by_interrupts;
            woken.by_others = known.by_others;
        });
    if (!facts) return std::unexpected(facts.error());
    const auto pairs = read_table<sharers_pair, std::uint64_t>(
        bpf_map__fd(maps.pairs),
        [&](const sharers_pair& pair, const std::uint64_t& times) { add_pair(pair, times, seen); });
    if (!pairs) return std::unexpected(pairs.error());
    return seen;
}

} // namespace

std::int64_t distance_to_preempt_count() {
    const std::unique_ptr<btf, BtfEnd> types(btf__load_vmlinux_btf());
    if (types == nullptr) return 0;
    const int section = btf__find_by_name_kind(types.get(), ".data..percpu", BTF_KIND_DATASEC);
    if (section <= 0) return 0;
    const auto* list = btf__type_by_id(types.get(), static_cast<unsigned>(section));
    std::optional<std::int64_t> from, to;
    const auto* variable = btf_var_secinfos(list);
    for (unsigned i = 0; i < btf_vlen(list); ++i, ++variable) {
        const char* name =
            btf__name_by_offset(types.get(), btf__type_by_id(types.get(), variable->type)->name_off);
        const std::string_view word = name == nullptr ? "" : name;
        if (word == "runqueues") from = variable->offset;
        // At its end in Linux 6.2 to 6.14; wakes.bpf.c adds where in it.
        if (word == "__preempt_count" || word == "pcpu_hot") to = variable->offset;
    }
    return from && to ? *to - *from : 0;
}

Result<std::unique_ptr<EventWakes>> EventWakes::open(const affinityd::host::Root& root) {
    if (const auto ready = prepare_bpf(root); !ready) return std::unexpected(ready.error());
    {
        KernelWakes trial;
        if (const auto loaded = trial.load(); !loaded) return std::unexpected(loaded.error());
        trial.watch(::getpid());
        const auto other = make_known_wakes();
        trial.watch(0);
        if (!other) return std::unexpected(other.error());
        const auto seen = trial.take();
        if (!seen) return std::unexpected(seen.error());
        if (const auto known = check_known(*seen, *other); !known) return std::unexpected(known.error());
    }
    auto wakes = std::make_unique<KernelWakes>();
    if (const auto loaded = wakes->load(); !loaded) return std::unexpected(loaded.error());
    return wakes;
}

} // namespace affinityctl
