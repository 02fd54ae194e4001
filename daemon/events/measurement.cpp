// SPDX-License-Identifier: Apache-2.0
#include "events/measurement.hpp"

#include "host/self.hpp"
#include "measure/program.hpp"
#include "status/changes.hpp"

#include <cerrno>
#include <utility>

#include <unistd.h>

namespace affinityd::events {

Measurements::Measurements(sd_event* event, const policy::Settings& settings, Keep keep)
    : event_(event), settings_(settings.measure), socket_(settings.runtime_dir + "/measure"),
      keep_(std::move(keep)) {}

Result<void> Measurements::start() {
    for (auto* timer : {&timeout_, &next_})
        if (auto added = timer->add_to(event_); !added) return added;
    if (settings_.interval.count() > 0) arm();
    return {};
}

void Measurements::arm() {
    const auto longest = std::chrono::microseconds(settings_.random_delay).count();
    const std::chrono::microseconds delay(std::uniform_int_distribution<std::int64_t>(0, longest)(random_));
    next_.arm(settings_.interval + delay);
}

void Measurements::use(const policy::Settings::Measure& settings) {
    if (settings == settings_) return;
    settings_ = settings;
    if (settings_.interval.count() > 0)
        arm();
    else
        next_.disarm();
}

Result<void> Measurements::begin(bool may_skip) {
    if (run_) return fail("a measurement is running already");
    measure::Request request{settings_.target, settings_.duration, settings_.bytes, std::nullopt};
    if (may_skip && settings_.idle_only) request.skip_if_busier = settings_.busy_above;
    auto started = start_run(measure::options_of(request));
    Result<void> done;
    if (started) {
        run_.emplace(std::move(*started));
        done = watch(measure::time_limit(request));
    } else {
        done = std::unexpected(started.error());
    }
    if (!done) ended({"", measure::Outcome::failed, done.error().to_string()});
    return done;
}

Result<Measurements::Running> Measurements::start_run(const std::vector<std::string>& options) const {
    auto run = measure::UnitRun::start(socket_, options);
    if (run) return Running(std::move(*run));
    if (run.error().code != ENOENT && run.error().code != ECONNREFUSED) return std::unexpected(run.error());
    if (!host::can_drop_privileges())
        return fail("measurements need affinity-measure.socket, which is not active", socket_);
    const auto program = measure::find_ttcp();
    if (!program) return fail("the program affinity-ttcp is not there", host::program_folder());
    std::vector<std::string> command{*program, "--child-of", std::to_string(::getpid())};
    command.insert(command.end(), options.begin(), options.end());
    auto child = measure::Child::start(command);
    if (!child) return std::unexpected(child.error());
    return Running(std::move(*child));
}

Result<void> Measurements::watch(std::chrono::seconds limit) {
    const int output = std::visit([](const auto& run) { return run.output(); }, *run_);
    if (auto added = output_.add_to(event_, output, "the measuring program"); !added) return added;
    if (const auto* child = std::get_if<measure::Child>(&*run_)) {
        sd_event_source* source = nullptr;
        const int status = sd_event_add_child(event_, &source, child->pid(), WEXITED, on_exit, this);
        if (status < 0) return fail("cannot watch the measuring program", {}, -status);
        exit_.reset(source);
    }
    timeout_.arm(limit);
    return {};
}

void Measurements::read_output() {
    if (std::visit([](auto& run) { return run.drain(); }, *run_)) return;
    if (auto* unit = std::get_if<measure::UnitRun>(&*run_)) return ended(unit->ended());
    output_.end();
    std::get<measure::Child>(*run_).close_output(); // the exit comes by itself
}

void Measurements::time_out() {
    if (auto* child = std::get_if<measure::Child>(&*run_))
        child->time_out(); // its exit is reported as usual
    else
        ended({"", measure::Outcome::timed_out, "took too long and was ended"});
}

int Measurements::on_exit(sd_event_source*, const siginfo_t* info, void* userdata) {
    auto* self = static_cast<Measurements*>(userdata);
    self->ended(std::get<measure::Child>(*self->run_).ended(*info));
    return 0;
}

void Measurements::measure(core::Answer answer, core::Until until) {
    if (auto begun = begin(false); !begun) return answer(std::unexpected(std::move(begun.error())));
    if (until == core::Until::begun) return answer(status::message_text("a measurement has begun"));
    waiting_ = std::move(answer);
}

void Measurements::ended(const measure::Run& run) {
    output_.end();
    exit_.reset();
    timeout_.disarm();
    run_.reset();
    auto result = keep_(run);
    if (auto answer = std::exchange(waiting_, {})) answer(std::move(result));
}

void Measurements::end() {
    next_.disarm();
    if (auto answer = std::exchange(waiting_, {}))
        answer(fail("the daemon is stopping: the measurement is given up"));
}

} // namespace affinityd::events
