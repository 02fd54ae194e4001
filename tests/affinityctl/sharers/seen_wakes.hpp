// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/sharers/watch.hpp"

namespace affinityctl::test {

/// The wake-ups of a process in ten seconds, put together thread by thread.
class SeenWakes {
  public:
    SeenWakes() { wakes.seconds = 10; }
    /// The next thread; its index is its place, -1: it has ended.
    SeenWakes& thread(int tid, const std::string& name, int index = automatic) {
        auto& known = wakes.threads[id(tid)];
        known.name = name;
        if (index == automatic) index = next_++;
        if (index >= 0) known.index = static_cast<unsigned>(index);
        return *this;
    }
    /// Each wakes the other so often.
    SeenWakes& pair(int one, int other, std::uint64_t times) {
        wakes.threads.try_emplace(id(one));
        wakes.threads.try_emplace(id(other));
        wakes.pairs[{id(one), id(other)}] += times;
        wakes.pairs[{id(other), id(one)}] += times;
        return *this;
    }
    static Wakes::Thread id(int tid) { return {tid, 77}; }
    Wakes wakes;

  private:
    static constexpr int automatic = -2;
    int next_ = 0;
};

} // namespace affinityctl::test
