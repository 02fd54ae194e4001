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

Result<void> Slices::add_to(sd_event* event) {
    sd_event_source* source = nullptr;
    int status = sd_event_add_defer(event, &source, on_slice, this);
    source_.reset(status >= 0 ? source : nullptr);
    if (status >= 0) status = sd_event_source_set_priority(source, SD_EVENT_PRIORITY_IDLE);
    if (status >= 0) status = sd_event_source_set_enabled(source, SD_EVENT_OFF);
    if (status < 0) return fail("cannot set up work in slices", {}, -status);
    return {};
}

void Slices::begin() { sd_event_source_set_enabled(source_.get(), SD_EVENT_ON); }

int Slices::on_slice(sd_event_source* source, void* userdata) {
    auto& self = *static_cast<Slices*>(userdata);
    const auto started = steady_clock::now();
    auto next_look = started + shortest;
    const auto is_over = [&] {
        const auto now = steady_clock::now();
        if (now - started >= longest) return true;
        if (now < next_look) return false;
        next_look = now + between;
        return self.work_.is_wanted();
    };
    // Off before the work, not after it: it may begin more of it.
    sd_event_source_set_enabled(source, SD_EVENT_OFF);
    if (self.work_.step(is_over))
        self.work_.done();
    else
        self.begin();
    return 0;
}

} // namespace affinityd::events
