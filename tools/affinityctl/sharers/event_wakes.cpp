// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/sharers/event_wakes.hpp"

#include "affinityctl/sharers/bpf/wakes.h"
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

/// Bytes from the variable "runqueues" of a CPU to the one that holds its preempt_count, by the running
/// kernel's BTF. 0: this architecture keeps that elsewhere, or it is not known.
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

/// Wake-ups that this program makes of itself, so that it can be seen whether they are counted as what they
/// are. Not every one is one: who has not slept yet is not woken.
struct KnownWakes {
    static constexpr int by_task = 40; ///< this thread and another one wake each other so often at most
    static constexpr int by_timer = 6; ///< and a timer wakes the other one so often
    int other = 0;                     ///< thread id of the other one
};

using affinityd::host::Fd;

struct WakePipe {
    Fd read, write;
};

affinityd::Result<WakePipe> make_pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return affinityd::fail("cannot make a pipe", {}, errno);
    return WakePipe{Fd(ends[0]), Fd(ends[1])};
}

/// Both return false when the other end is closed.
bool await_byte(const Fd& from) {
    char byte = 0;
    return ::read(from.get(), &byte, 1) == 1;
}
bool send_byte(const Fd& to) { return ::write(to.get(), "", 1) == 1; }

/// Takes some milliseconds. An Error: no thread, or no pipe.
affinityd::Result<KnownWakes> make_known_wakes() {
    auto there = make_pipe();
    if (!there) return std::unexpected(there.error());
    auto back = make_pipe();
    if (!back) return std::unexpected(back.error());
    std::atomic<int> tid = 0;
    try {
        std::thread other([&] {
            tid = ::gettid();
            while (await_byte(there->read) && send_byte(back->write)) {
            }
            for (int i = 0; i < KnownWakes::by_timer; ++i)
                std::this_thread::sleep_for(std::chrono::microseconds(200));
        });
        bool is_open = true;
        for (int i = 0; i < KnownWakes::by_task / 2 && is_open; ++i)
            is_open = send_byte(there->write) && await_byte(back->read);
        there->write.reset();
        other.join();
    } catch (const std::system_error& error) {
        return affinityd::fail("cannot make a thread", {}, error.code().value());
    }
    return KnownWakes{tid};
}

constexpr int most_tries = 200; // a millisecond each

/// The clock ticks of /proc/PID/stat for nanoseconds since boot.
std::uint64_t ticks_of(std::uint64_t nanoseconds) {
    static const auto tick = 1'000'000'000ULL / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
    return nanoseconds / tick;
}

TaskId id_of(unsigned tid, std::uint64_t born) { return {static_cast<int>(tid), ticks_of(born)}; }

template <class Key, class Value>
Result<void> clear_table(const bpf_map* map) {
    std::vector<Key> keys;
    const auto done =
        read_table<Key, Value>(bpf_map__fd(map), [&](const Key& key, const Value&) { keys.push_back(key); });
    for (const auto& key : keys)
        bpf_map_delete_elem(bpf_map__fd(map), &key);
    return done;
}

/// The memory of one CPU is shared with the kernel.
void add_places(const sharers_cpu& cpu, Wakes& seen) {
    for (const auto& place : cpu.places) {
        if (place.times == 0) continue;
        const auto waker = id_of(place.pair.waker, place.pair.waker_born);
        const auto wakee = id_of(place.pair.wakee, place.pair.wakee_born);
        seen.threads.try_emplace(waker);
        seen.threads.try_emplace(wakee);
        seen.pairs[{waker, wakee}] += place.times;
    }
}

/// At least a part of the wake-ups that are known must be seen as what they are, and none as something else.
/// A few are not made: who has not slept yet is not woken. "": it is so.
std::string not_as_known(const Wakes& seen, const KnownWakes& known) {
    std::uint64_t between = 0, by_timers = 0;
    for (const auto& [pair, times] : seen.pairs)
        if (pair.first.tid == known.other || pair.second.tid == known.other) between += times;
    for (const auto& [id, thread] : seen.threads)
        if (id.tid == known.other) by_timers += thread.by_interrupts;
    // Two more: the end of the pipe, and that of the thread.
    const bool is_as_known = between >= KnownWakes::by_task / 4 && between <= KnownWakes::by_task + 3 &&
                             by_timers >= KnownWakes::by_timer - 2;
    if (is_as_known) return {};
    return fmt::format(
        "this kernel does not tell wake-ups that interrupts raise from those that tasks raise (of {} by "
        "tasks {} were seen as such, of {} by timers {})",
        +KnownWakes::by_task, between, +KnownWakes::by_timer, by_timers);
}

} // namespace

struct EventWakes::Programs {
    sharers_wakes* skeleton = nullptr;

    Programs() = default;
    Programs(const Programs&) = delete;
    Programs& operator=(const Programs&) = delete;
    ~Programs() {
        if (skeleton != nullptr) sharers_wakes__destroy(skeleton);
    }

    /// 0 or an errno value.
    int begin() {
        skeleton = sharers_wakes__open();
        if (skeleton == nullptr) return errno;
        skeleton->rodata->preempt_distance = distance_to_preempt_count();
        if (const int failed = sharers_wakes__load(skeleton); failed != 0) return -failed;
        return -sharers_wakes__attach(skeleton);
    }

    [[nodiscard]] std::uint64_t note(std::uint32_t which) const {
        std::uint64_t count = 0;
        bpf_map_lookup_elem(bpf_map__fd(skeleton->maps.notes), &which, &count);
        return count;
    }
};

EventWakes::EventWakes(std::unique_ptr<Programs> programs) : programs_(std::move(programs)) {}
EventWakes::EventWakes(EventWakes&&) noexcept = default;
EventWakes& EventWakes::operator=(EventWakes&&) noexcept = default;
EventWakes::~EventWakes() = default;

Result<EventWakes> EventWakes::open(const affinityd::host::Root& root) {
    if (const auto ready = prepare_bpf(root); !ready) return std::unexpected(ready.error());
    EventWakes wakes(std::make_unique<Programs>());
    if (const int code = wakes.programs_->begin(); code != 0)
        return std::unexpected(refused_bpf(code, "the tracepoint sched:sched_waking"));
    if (auto done = wakes.look(1); !done) return std::unexpected(done.error());
    wakes.watch(::getpid());
    const auto known = make_known_wakes();
    wakes.stop();
    wakes.programs_->skeleton->data->heaviest = 1;
    if (!known) return std::unexpected(known.error());
    const auto seen = wakes.take();
    if (!seen) return std::unexpected(seen.error());
    if (const auto fault = not_as_known(*seen, *known); !fault.empty()) return fail(fault);
    for (auto& cpu : wakes.programs_->skeleton->bss->cpus)
        std::ranges::fill(cpu.places, sharers_place{});
    const auto& maps = wakes.programs_->skeleton->maps;
    if (auto done = clear_table<sharers_pair, std::uint64_t>(maps.pairs); !done)
        return std::unexpected(done.error());
    if (auto done = clear_table<sharers_thread, sharers_facts>(maps.threads); !done)
        return std::unexpected(done.error());
    return wakes;
}

void EventWakes::watch(int pid) { programs_->skeleton->bss->watched = pid; }

void EventWakes::stop() { watch(0); }

Result<void> EventWakes::look(unsigned parts) {
    auto& skeleton = *programs_->skeleton;
    for (auto& cpu : skeleton.bss->cpus)
        cpu.exact_left = exact_at_once / parts;
    skeleton.data->stands_for = parts;
    skeleton.data->heaviest = std::max(skeleton.data->heaviest, parts);
    if (skeleton.links.on_waking != nullptr) return {};
    for (int tries = 0; skeleton.links.on_waking == nullptr && tries < most_tries; ++tries) {
        if (tries > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        skeleton.links.on_waking = bpf_program__attach(skeleton.progs.on_waking);
        if (skeleton.links.on_waking == nullptr && errno != EEXIST) break; // not yet let go of since rest()
    }
    if (skeleton.links.on_waking == nullptr)
        return fail("the kernel does not let it look at wake-ups again", {}, errno);
    return {};
}

bool EventWakes::were_many() const {
    return std::ranges::any_of(programs_->skeleton->bss->cpus,
                               [](const sharers_cpu& cpu) { return cpu.exact_left == 0; });
}

void EventWakes::rest() {
    auto& skeleton = *programs_->skeleton;
    skeleton.data->stands_for = 0; // the kernel takes its time to let go of the program
    bpf_link__destroy(skeleton.links.on_waking);
    skeleton.links.on_waking = nullptr;
}

Result<Wakes> EventWakes::take() const {
    Wakes seen;
    seen.lost = programs_->note(sharers_lost);
    seen.unnamed = programs_->note(sharers_nameless);
    seen.heaviest = programs_->skeleton->data->heaviest;
    for (const auto& cpu : programs_->skeleton->bss->cpus)
        add_places(cpu, seen);
    const auto& maps = programs_->skeleton->maps;
    const auto facts = read_table<sharers_thread, sharers_facts>(
        bpf_map__fd(maps.threads), [&](const sharers_thread& thread, const sharers_facts& known) {
            auto& woken = seen.threads[id_of(thread.tid, thread.born)];
            woken.name.assign(known.name, ::strnlen(known.name, sizeof(known.name)));
            woken.by_interrupts = known.by_interrupts;
            woken.by_others = known.by_others;
        });
    if (!facts) return std::unexpected(facts.error());
    const auto pairs = read_table<sharers_pair, std::uint64_t>(
        bpf_map__fd(maps.pairs), [&](const sharers_pair& pair, const std::uint64_t& times) {
            const auto waker = id_of(pair.waker, pair.waker_born);
            const auto wakee = id_of(pair.wakee, pair.wakee_born);
            seen.threads.try_emplace(waker);
            seen.threads.try_emplace(wakee);
            seen.pairs[{waker, wakee}] += times;
        });
    if (!pairs) return std::unexpected(pairs.error());
    return seen;
}

} // namespace affinityctl
