// SPDX-License-Identifier: Apache-2.0
#include "experiments/frame/pinned_thread.hpp"

#include "host/scheduler.hpp"

#include <future>
#include <system_error>
#include <utility>

namespace affinityd::experiments {

Result<PinnedThread> PinnedThread::start(const CpuSet& cpus, std::function<void()> body) {
    std::promise<int> pinned;
    auto outcome = pinned.get_future();
    std::jthread thread;
    try {
        thread = std::jthread([cpus, pinned = std::move(pinned), body = std::move(body)]() mutable {
            const int code = host::set_affinity(0, cpus);
            pinned.set_value(code);
            if (code == 0) body();
        });
    } catch (const std::system_error& error) {
        return fail("cannot make a thread", {}, error.code().value());
    }
    if (const int code = outcome.get(); code != 0)
        return fail("a thread of this program may not run there", "CPU " + cpus.to_list(), code);
    return PinnedThread(std::move(thread));
}

} // namespace affinityd::experiments
