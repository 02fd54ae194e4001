// SPDX-License-Identifier: Apache-2.0
#include "events/measurement.hpp"

#include "base/clock.hpp"
#include "host/self.hpp"
#include "measure/program.hpp"

#include <cerrno>
#include <utility>

#include <unistd.h>

namespace affinityd::events {

Measurement::Measurement(sd_event* event, policy::Settings::Measure settings, Done done, Places places)
    : event_(event), settings_(std::move(settings)), done_(std::move(done)), places_(std::move(places)) {}

Result<void> Measurement::start(bool may_skip) {
    if (running()) return fail("a measurement is running already");
    measure::Request request{settings_.target, settings_.duration, settings_.bytes, std::nullopt};
    if (may_skip && settings_.idle_only) request.skip_if_busier = settings_.busy_above;
    auto begun = begin(measure::options_of(request));
    if (!begun) return std::unexpected(begun.error());
    watched_.emplace(std::move(*begun));
    if (const int status = watch(*watched_, measure::time_limit(request)); status < 0) {
        watched_.reset();
        return fail("cannot watch the measuring program", {}, -status);
    }
    return {};
}

Result<Measurement::Watched> Measurement::begin(const std::vector<std::string>& options) const {
    auto run = measure::UnitRun::start(places_.socket, options);
    if (run) return Watched{std::move(*run), {}, {}, {}};
    if (run.error().code != ENOENT && run.error().code != ECONNREFUSED) return std::unexpected(run.error());
    if (!host::can_drop_privileges())
        return fail("measurements need affinity-measure.socket, which is not active", places_.socket);
    if (!places_.program) return fail("the program affinity-ttcp is not there", host::program_folder());
    std::vector<std::string> command{*places_.program, "--child-of", std::to_string(::getpid())};
    command.insert(command.end(), options.begin(), options.end());
    auto child = measure::Child::start(command);
    if (!child) return std::unexpected(child.error());
    return Watched{std::move(*child), {}, {}, {}};
}

/// 0, or the negative errno of sd-event.
int Measurement::watch(Watched& watched, std::chrono::seconds limit) {
    sd_event_source* source = nullptr;
    const int output = std::visit([](const auto& run) { return run.output(); }, watched.run);
    int status = sd_event_add_io(event_, &source, output, EPOLLIN, on_output, this);
    if (status < 0) return status;
    watched.output.reset(source);
    if (const auto* child = std::get_if<measure::Child>(&watched.run)) {
        status = sd_event_add_child(event_, &source, child->pid(), WEXITED, on_exit, this);
        if (status < 0) return status;
        watched.exit.reset(source);
    }
    status = sd_event_add_time_relative(event_, &source, CLOCK_MONOTONIC, usec_of(limit), 1'000'000,
                                        on_timeout, this);
    if (status < 0) return status;
    watched.timeout.reset(source);
    return 0;
}

int Measurement::on_output(sd_event_source*, int, std::uint32_t, void* userdata) {
    auto* self = static_cast<Measurement*>(userdata);
    auto& watched = *self->watched_;
    if (std::visit([](auto& run) { return run.drain(); }, watched.run)) return 0;
    if (auto* unit = std::get_if<measure::UnitRun>(&watched.run))
        self->end(unit->ended());
    else {
        watched.output.reset();
        std::get<measure::Child>(watched.run).close_output(); // the exit comes by itself
    }
    return 0;
}

int Measurement::on_timeout(sd_event_source*, std::uint64_t, void* userdata) {
    auto* self = static_cast<Measurement*>(userdata);
    if (auto* child = std::get_if<measure::Child>(&self->watched_->run))
        child->time_out(); // its exit is reported as usual
    else
        self->end({"", measure::Outcome::timed_out, "took too long and was ended"});
    return 0;
}

int Measurement::on_exit(sd_event_source*, const siginfo_t* info, void* userdata) {
    auto* self = static_cast<Measurement*>(userdata);
    self->end(std::get<measure::Child>(self->watched_->run).ended(*info));
    return 0;
}

void Measurement::end(const measure::Run& run) {
    watched_.reset(); // before done_, which may start the next one
    done_(run);
}

} // namespace affinityd::events
