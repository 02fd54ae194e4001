// SPDX-License-Identifier: Apache-2.0
#include "events/measurement.hpp"

#include "base/clock.hpp"
#include "host/self.hpp"
#include "measure/request.hpp"

#include <utility>

namespace affinityd::events {

MeasurementChild::MeasurementChild(sd_event* event, app::Settings::Measure settings, Done done,
                                   std::optional<std::string> program)
    : event_(event), settings_(std::move(settings)), done_(std::move(done)), program_(std::move(program)) {}

Result<void> MeasurementChild::start(bool may_skip) {
    if (running()) return fail("a measurement is running already");
    if (!program_) return fail("the program affinity-ttcp is not there", host::program_folder());
    measure::Request request{settings_.target, settings_.duration, settings_.bytes, std::nullopt};
    if (may_skip && settings_.idle_only) request.skip_if_busier = settings_.busy_above;
    auto child = measure::Child::start(measure::command_line(*program_, request));
    if (!child) return std::unexpected(child.error());
    watched_.emplace(Watched{std::move(*child), {}, {}, {}});
    if (const int status = watch(*watched_, measure::time_limit(request)); status < 0) {
        watched_.reset();
        return fail("cannot watch the measuring program", {}, -status);
    }
    return {};
}

/// 0, or the negative errno of sd-event.
int MeasurementChild::watch(Watched& watched, std::chrono::seconds limit) {
    sd_event_source* source = nullptr;
    int status = sd_event_add_io(event_, &source, watched.child.output(), EPOLLIN, on_output, this);
    if (status < 0) return status;
    watched.output.reset(source);
    status = sd_event_add_child(event_, &source, watched.child.pid(), WEXITED, on_exit, this);
    if (status < 0) return status;
    watched.exit.reset(source);
    status = sd_event_add_time_relative(event_, &source, CLOCK_MONOTONIC, usec_of(limit), 1'000'000,
                                        on_timeout, this);
    if (status < 0) return status;
    watched.timeout.reset(source);
    return 0;
}

int MeasurementChild::on_output(sd_event_source*, int, std::uint32_t events, void* userdata) {
    auto& watched = *static_cast<MeasurementChild*>(userdata)->watched_;
    watched.child.drain();
    if ((events & EPOLLHUP) != 0) watched.output.reset();
    return 0;
}

int MeasurementChild::on_timeout(sd_event_source*, std::uint64_t, void* userdata) {
    static_cast<MeasurementChild*>(userdata)->watched_->child.time_out(); // its exit is reported as usual
    return 0;
}

int MeasurementChild::on_exit(sd_event_source*, const siginfo_t* info, void* userdata) {
    auto* self = static_cast<MeasurementChild*>(userdata);
    const auto run = self->watched_->child.ended(*info);
    self->watched_.reset(); // before done_, which may start the next one
    self->done_(run);
    return 0;
}

} // namespace affinityd::events
