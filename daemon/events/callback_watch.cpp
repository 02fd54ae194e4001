// SPDX-License-Identifier: Apache-2.0
#include "events/callback_watch.hpp"

#include "base/clock.hpp"
#include "base/text.hpp"
#include "host/boot_clock.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <sys/resource.h>

namespace affinityd::events {

namespace {

#ifdef AFFINITYD_CALLBACK_WATCH
constexpr bool watches = true;
#else
constexpr bool watches = false;
#endif

/// Of this thread, so far, that needed no disk.
long page_faults() {
    rusage usage{};
    ::getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
}

} // namespace

CallbackWatch::CallbackWatch() {
    if (!watches) return;
    const auto* other = ::secure_getenv("AFFINITYD_CALLBACK_LIMIT_MS");
    if (other != nullptr)
        limit_ = CallbackLimit(std::chrono::milliseconds(parse_number<unsigned>(other).value_or(0)));
    goes_on_ = ::secure_getenv("AFFINITYD_CALLBACK_GOES_ON") != nullptr;
    stack_.prepare(std::max<std::chrono::nanoseconds>(limit_.limit() * 4 / 5, std::chrono::milliseconds(1)));
}

void CallbackWatch::look() {
    looked_ = std::chrono::steady_clock::now();
    stolen_ = host::stolen_ticks();
}

void CallbackWatch::note(std::chrono::nanoseconds used, bool has_faulted) {
    if (limit_.is_over(used)) {
        const auto before = stolen_;
        look();
        if (stolen_ != before) return;
    }
    longest_ = std::max(longest_, used);
    if (!limit_.is_over(used)) return;
    std::fprintf(stderr, "affinityd: a callback took %lld us of CPU time%s\n",
                 static_cast<long long>(std::chrono::duration_cast<std::chrono::microseconds>(used).count()),
                 has_faulted ? ", with page faults" : "");
    stack_.print();
    if (!goes_on_ && limit_.is_too_long(used, has_faulted)) std::abort();
}

int CallbackWatch::watched(const std::function<int()>& callback) {
    if (!watches) return callback();
    if (std::chrono::steady_clock::now() - looked_ > std::chrono::seconds(1)) look();
    stack_.begin();
    const auto faults = page_faults();
    const auto before = thread_time();
    const int status = callback();
    const auto used = thread_time() - before;
    stack_.end();
    note(used, page_faults() != faults);
    return status;
}

int CallbackWatch::run(sd_event* event, const std::function<void()>& after_each) {
    const std::function<int()> dispatch = [&] {
        const int status = sd_event_dispatch(event);
        after_each();
        return status;
    };
    while (sd_event_get_state(event) != SD_EVENT_FINISHED) {
        int status = sd_event_prepare(event);
        if (status == 0) status = sd_event_wait(event, ~0ULL);
        if (status > 0) status = watched(dispatch);
        if (status < 0) return status;
    }
    int code = 0;
    const int status = sd_event_get_exit_code(event, &code);
    return status < 0 ? status : code;
}

} // namespace affinityd::events
