// SPDX-License-Identifier: Apache-2.0
#include "inventory/accept_list.hpp"

#include "host/blocked_signals.hpp"
#include "host/fd.hpp"
#include "inventory/listener_reading.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

namespace affinityd::inventory {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds shortest_rest{20}, longest_rest{4000};
constexpr int rests_per_reading = 19; // a twentieth of a CPU

} // namespace

struct AcceptList::State {
    explicit State(const host::Root& root) : reader(root) {}
    AcceptReader reader; ///< the thread's
    host::Fd arrived{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    std::mutex mutex;
    std::condition_variable_any changed;
    // Under the mutex:
    std::optional<std::vector<TaskId>> asked;
    std::optional<std::vector<AcceptSockets>> list;
    Clock::time_point next{}; ///< none is read before that

    void work(const std::stop_token& stop);
    [[nodiscard]] std::vector<AcceptSockets> read(const std::vector<TaskId>& processes,
                                                  const std::stop_token& stop);
    std::jthread thread; ///< last, so that it ends before what it uses
};

void AcceptList::State::work(const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    while (changed.wait(lock, stop, [this] { return asked.has_value(); }) && !stop.stop_requested()) {
        if (Clock::now() < next) {
            changed.wait_until(lock, stop, next, [] { return false; });
            continue;
        }
        const auto processes = *std::exchange(asked, std::nullopt);
        lock.unlock();
        const auto begun = thread_cpu_time();
        auto found = read(processes, stop);
        const auto used = thread_cpu_time() - begun;
        lock.lock();
        next =
            Clock::now() + std::clamp<Clock::duration>(rests_per_reading * used, shortest_rest, longest_rest);
        list = std::move(found);
        const std::uint64_t one = 1;
        std::ignore = ::write(arrived.get(), &one, sizeof one); // a counter that is full is readable
    }
}

std::vector<AcceptSockets> AcceptList::State::read(const std::vector<TaskId>& processes,
                                                   const std::stop_token& stop) {
    reader.keep_only(processes);
    std::vector<AcceptSockets> found;
    for (const auto& process : processes) {
        if (stop.stop_requested()) break;
        found.push_back(reader.read(process));
    }
    return found;
}

AcceptList::AcceptList(const host::Root& root) : state_(std::make_unique<State>(root)) {}

AcceptList::~AcceptList() = default;

bool AcceptList::ask(std::vector<TaskId> processes) {
    {
        const std::lock_guard lock(state_->mutex);
        state_->asked = std::move(processes);
    }
    state_->changed.notify_all();
    if (state_->thread.joinable()) return true;
    const host::BlockedSignals blocked;
    try {
        state_->thread =
            std::jthread([state = state_.get()](const std::stop_token& stop) { state->work(stop); });
    } catch (const std::system_error&) { // the next one tries again
        return false;
    }
    return true;
}

int AcceptList::fd() const { return state_->arrived.get(); }

std::optional<std::vector<AcceptSockets>> AcceptList::take() {
    std::uint64_t count = 0;
    std::ignore = ::read(state_->arrived.get(), &count, sizeof count);
    const std::lock_guard lock(state_->mutex);
    return std::exchange(state_->list, std::nullopt);
}

} // namespace affinityd::inventory
