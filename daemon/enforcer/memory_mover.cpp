// SPDX-License-Identifier: Apache-2.0
#include "enforcer/memory_mover.hpp"

#include "base/text.hpp"
#include "host/numa.hpp"
#include "host/root.hpp"
#include "inventory/lookup.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <system_error>

#include <unistd.h>

namespace affinityd::enforcer {

using std::chrono::duration_cast;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

void MemoryMover::ask(MemoryMove move) {
    const std::lock_guard lock(mutex_);
    std::erase_if(waiting_, [&](const MemoryMove& other) { return other.process == move.process; });
    waiting_.push_back(std::move(move));
    if (!worker_.joinable()) {
        try {
            worker_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
        } catch (const std::system_error&) { // no thread is to be had now: the next move tries again
        }
    }
    wake_.notify_one();
}

std::vector<MemoryMoved> MemoryMover::take_done() {
    const std::lock_guard lock(mutex_);
    return std::exchange(done_, {});
}

void MemoryMover::work(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (wake_.wait(lock, stop, [&] { return !waiting_.empty(); })) {
        const MemoryMove move = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        const auto bytes = resident_bytes(move.process.tid);
        const auto begun = steady_clock::now();
        auto moved = carry_out(move);
        const auto took = steady_clock::now() - begun;
        moved.took_ms = static_cast<std::uint64_t>(duration_cast<milliseconds>(took).count());
        lock.lock();
        done_.push_back(std::move(moved));
        const auto rest = std::chrono::duration<double>(static_cast<double>(bytes) /
                                                        static_cast<double>(most_bytes_per_second));
        wake_.wait_until(lock, stop, begun + duration_cast<steady_clock::duration>(rest),
                         [] { return false; });
    }
}

MemoryMoved MemoryMover::carry_out(const MemoryMove& move) const {
    const int pid = move.process.tid;
    const auto thread = inventory::read_thread(*root_, pid, pid);
    if (!thread) return {move, thread.error().code, 0, 0};
    if (!*thread || (*thread)->id != move.process) return {move, ESRCH, 0, 0};
    const auto left = host::migrate_pages(pid, move.from, move.to);
    if (!left) return {move, left.error(), 0, 0};
    return {move, 0, *left, 0};
}

/// proc_pid_statm(5): the second number, in pages.
std::uint64_t MemoryMover::resident_bytes(int pid) const {
    const auto text = root_->proc().text(std::to_string(pid) + "/statm");
    if (!text) return 0;
    const auto words = split_words(*text);
    const auto pages = words.size() > 1 ? parse_number<std::uint64_t>(words[1]) : std::nullopt;
    return pages.value_or(0) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

} // namespace affinityd::enforcer
