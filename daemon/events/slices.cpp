// SPDX-License-Identifier: Apache-2.0
#include "events/slices.hpp"

#include <chrono>

namespace affinityd::events {

namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds longest{2};    ///< after which the loop looks at its other sources
constexpr std::chrono::microseconds shortest{100}; ///< the same while a process waits to be placed
constexpr std::chrono::microseconds between{20};   ///< looks whether one waits: each is a system call

} // namespace

void Slices::slice() {
    const auto started = steady_clock::now();
    auto next_look = started + shortest;
    const auto is_over = [&] {
        const auto now = steady_clock::now();
        if (now - started >= longest) return true;
        if (now < next_look) return false;
        next_look = now + between;
        return work_.is_wanted();
    };
    if (work_.step(is_over))
        work_.done();
    else
        begin();
}

} // namespace affinityd::events
