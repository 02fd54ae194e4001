// SPDX-License-Identifier: Apache-2.0
#include "behaviours/memory/memory_mover.hpp"

#include "host/root.hpp"
#include "host/scheduler.hpp"
#include "host/signals.hpp"
#include "inventory/process_files.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

namespace affinityd::behaviours {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr std::chrono::seconds longest_wait{1}; ///< at the end
constexpr std::chrono::minutes longest_spread{5};

} // namespace

struct MemoryMover::State {
    const host::Root* root; ///< used only while the mover lives, or in its last second
    Migrate migrate;
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<MemoryMove> waiting;
    std::vector<MemoryMoved> done;
    bool is_running = false; ///< the thread
    bool is_over = false;

    State(const host::Root& of, Migrate by) : root(&of), migrate(std::move(by)) {}
    void work();
    [[nodiscard]] MemoryMoved carry_out(const MemoryMove& move);
    [[nodiscard]] int refusal_of(const TaskId& process);
    [[nodiscard]] std::expected<long, int> interleave(const MemoryMove& move);
    [[nodiscard]] bool has_ended() {
        const std::lock_guard lock(mutex);
        return is_over;
    }
};

MemoryMover::MemoryMover(const host::Root& root, Migrate migrate)
    : state_(std::make_shared<State>(root, migrate ? std::move(migrate) : Migrate(host::migrate_pages))) {}

MemoryMover::~MemoryMover() {
    std::unique_lock lock(state_->mutex);
    state_->is_over = true;
    state_->changed.notify_all();
    state_->changed.wait_for(lock, longest_wait, [this] { return !state_->is_running; });
}

void MemoryMover::ask(MemoryMove move) {
    const std::lock_guard lock(state_->mutex);
    std::erase_if(state_->waiting, [&](const MemoryMove& other) { return other.process == move.process; });
    state_->waiting.push_back(std::move(move));
    if (!state_->is_running) {
        const host::BlockedSignals blocked;
        try {
            std::thread([state = state_] { state->work(); }).detach();
            state_->is_running = true;
        } catch (const std::system_error&) { // no thread is to be had now: the next move tries again
        }
    }
    state_->changed.notify_all();
}

std::vector<MemoryMoved> MemoryMover::take_done() {
    const std::lock_guard lock(state_->mutex);
    return std::exchange(state_->done, {});
}

void MemoryMover::State::work() {
    std::unique_lock lock(mutex);
    while (true) {
        changed.wait(lock, [this] { return is_over || !waiting.empty(); });
        if (is_over) break;
        const MemoryMove move = std::move(waiting.front());
        waiting.pop_front();
        lock.unlock();
        const auto begun = steady_clock::now();
        auto moved = carry_out(move);
        const auto took = steady_clock::now() - begun;
        moved.took_ms = static_cast<std::uint64_t>(duration_cast<milliseconds>(took).count());
        lock.lock();
        done.push_back(std::move(moved));
    }
    is_running = false;
    changed.notify_all();
}

/// No process can set the memory policy of another: its own memory is moved, 2 MiB to each node in turn by
/// address, so that huge pages stay whole and what is in its place stays there.
/// 0, or why the process cannot be asked for, as errno.
int MemoryMover::State::refusal_of(const TaskId& process) {
    const auto thread = inventory::read_thread(*root, process.tid, process.tid);
    if (!thread) return thread.error().code;
    return *thread && (*thread)->id == process ? 0 : ESRCH;
}

/// Each call has all CPUs put their lists of pages away, so calls are few. Addresses without memory take
/// time, too, and a program may have any number of them.
std::expected<long, int> MemoryMover::State::interleave(const MemoryMove& move) {
    constexpr std::uint64_t part = 2U << 20, at_once = 128U << 20;
    const auto until = steady_clock::now() + longest_spread;
    const int pid = move.process.tid;
    long left = 0;
    for (const auto& [first, end] : inventory::own_memory(*root, pid))
        for (auto at = first; at < end; at += std::min(end - at, at_once)) {
            if (has_ended()) return std::unexpected(ECANCELED);
            if (steady_clock::now() > until) return std::unexpected(ETIMEDOUT);
            if (const int refusal = refusal_of(move.process)) return std::unexpected(refusal);
            const auto moved = host::move_pages(pid, at, at + std::min(end - at, at_once), part, move.to);
            if (!moved) return moved;
            left += *moved;
        }
    return left;
}

MemoryMoved MemoryMover::State::carry_out(const MemoryMove& move) {
    const int pid = move.process.tid;
    if (const int refusal = refusal_of(move.process)) return {move, refusal, 0, 0};
    // Both wait for the lock of the process's memory map; only this one can be ended by a signal meanwhile,
    // so that the daemon's process can go.
    std::ignore = root->proc().read(std::to_string(pid) + "/cmdline", 1);
    if (has_ended()) return {move, ECANCELED, 0, 0};
    const auto left = move.is_interleaved ? interleave(move) : migrate(pid, move.from, move.to);
    if (!left) return {move, left.error(), 0, 0};
    return {move, 0, *left, 0};
}

} // namespace affinityd::behaviours
