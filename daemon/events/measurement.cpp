// SPDX-License-Identifier: Apache-2.0
#include "events/measurement.hpp"

#include "host/self.hpp"
#include "measure/program.hpp"
#include "status/changes.hpp"

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
    run_.emplace(std::move(*begun));
    auto watched = watch(measure::time_limit(request));
    if (!watched) {
        output_.end();
        exit_.reset();
        run_.reset();
    }
    return watched;
}

Result<Measurement::Running> Measurement::begin(const std::vector<std::string>& options) const {
    auto run = measure::UnitRun::start(places_.socket, options);
    if (run) return Running(std::move(*run));
    if (run.error().code != ENOENT && run.error().code != ECONNREFUSED) return std::unexpected(run.error());
    if (!host::can_drop_privileges())
        return fail("measurements need affinity-measure.socket, which is not active", places_.socket);
    if (!places_.program) return fail("the program affinity-ttcp is not there", host::program_folder());
    std::vector<std::string> command{*places_.program, "--child-of", std::to_string(::getpid())};
    command.insert(command.end(), options.begin(), options.end());
    auto child = measure::Child::start(command);
    if (!child) return std::unexpected(child.error());
    return Running(std::move(*child));
}

Result<void> Measurement::watch(std::chrono::seconds limit) {
    const int output = std::visit([](const auto& run) { return run.output(); }, *run_);
    if (auto added = output_.add_to(event_, output, "the measuring program"); !added) return added;
    if (const auto* child = std::get_if<measure::Child>(&*run_)) {
        sd_event_source* source = nullptr;
        const int status = sd_event_add_child(event_, &source, child->pid(), WEXITED, on_exit, this);
        if (status < 0) return fail("cannot watch the measuring program", {}, -status);
        exit_.reset(source);
    }
    if (auto added = timeout_.add_to(event_); !added) return added;
    timeout_.arm(limit);
    return {};
}

void Measurement::read_output() {
    if (std::visit([](auto& run) { return run.drain(); }, *run_)) return;
    if (auto* unit = std::get_if<measure::UnitRun>(&*run_)) return end(unit->ended());
    output_.end();
    std::get<measure::Child>(*run_).close_output(); // the exit comes by itself
}

void Measurement::time_out() {
    if (auto* child = std::get_if<measure::Child>(&*run_))
        child->time_out(); // its exit is reported as usual
    else
        end({"", measure::Outcome::timed_out, "took too long and was ended"});
}

int Measurement::on_exit(sd_event_source*, const siginfo_t* info, void* userdata) {
    auto* self = static_cast<Measurement*>(userdata);
    self->end(std::get<measure::Child>(*self->run_).ended(*info));
    return 0;
}

void Measurement::end(const measure::Run& run) {
    output_.end();
    exit_.reset();
    timeout_.disarm();
    run_.reset(); // before done_, which may start the next one
    done_(run);
}

MeasureSchedule::MeasureSchedule(sd_event* event, const policy::Settings& settings, Keep keep)
    : event_(event), settings_(settings.measure), keep_(std::move(keep)),
      measurement_(event, settings.measure, [this](const auto& run) { ended(run); },
                   {settings.runtime_dir + "/measure"}),
      timer_([this] {
          arm();
          static_cast<void>(begin(true).has_value()); // a run that could not start is on record
      }) {}

Result<void> MeasureSchedule::start() {
    if (auto added = timer_.add_to(event_); !added) return added;
    if (settings_.interval.count() > 0) arm();
    return {};
}

void MeasureSchedule::arm() {
    const auto longest = std::chrono::microseconds(settings_.random_delay).count();
    const std::chrono::microseconds delay(std::uniform_int_distribution<std::int64_t>(0, longest)(random_));
    timer_.arm(settings_.interval + delay);
}

void MeasureSchedule::use(const policy::Settings::Measure& settings) {
    if (settings == settings_) return;
    settings_ = settings;
    measurement_.use(settings);
    if (settings_.interval.count() > 0)
        arm();
    else
        timer_.disarm();
}

Result<void> MeasureSchedule::begin(bool may_skip) {
    if (measurement_.running()) return fail("a measurement is running already");
    auto started = measurement_.start(may_skip);
    if (!started) ended({"", measure::Outcome::failed, started.error().to_string()});
    return started;
}

void MeasureSchedule::measure(app::Answer answer, app::Until until) {
    if (auto begun = begin(false); !begun) return answer(std::unexpected(std::move(begun.error())));
    if (until == app::Until::begun) return answer(status::message_text("a measurement has begun"));
    waiting_ = std::move(answer);
}

void MeasureSchedule::ended(const measure::Run& run) {
    auto result = keep_(run);
    if (auto answer = std::exchange(waiting_, {})) answer(std::move(result));
}

void MeasureSchedule::end() {
    timer_.disarm();
    if (auto answer = std::exchange(waiting_, {}))
        answer(fail("the daemon is stopping: the measurement is given up"));
}

} // namespace affinityd::events
