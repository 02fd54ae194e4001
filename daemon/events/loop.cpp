// SPDX-License-Identifier: Apache-2.0
#include "events/loop.hpp"

#include "events/cpuset_watch.hpp"
#include "events/folder_watch.hpp"
#include "events/hardware_watch.hpp"
#include "events/process_events.hpp"

#include <csignal>
#include <random>

#include <fmt/format.h>
#include <systemd/sd-daemon.h>

namespace affinityd::events {

namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::steady_clock;

constexpr std::chrono::milliseconds slice{4}; ///< a full pass hands the loop back after this long
constexpr microseconds short_slice{200};      ///< and after this long if a process waits to be placed
constexpr std::chrono::milliseconds settle{
    300}; ///< what asks for another pass comes in bursts: one pass for all

class EventLoop final : public Loop {
  public:
    EventLoop(app::Manager& manager, app::Log& log, LoopHandle event)
        : manager_(manager), log_(log), event_(std::move(event)),
          child_(event_.get(), manager.settings().measure,
                 [this](const auto& run) { manager_.measured(run); }) {}

    [[nodiscard]] sd_event* event() const override { return event_.get(); }

    Result<void> subscribe() override {
        if (auto done = add_signals(); !done) return done;
        if (auto done = add_timers(); !done) return done;
        manager_.on_work([this](app::Manager::Urgency urgency) {
            if (urgency == app::Manager::Urgency::now)
                sd_event_source_set_enabled(slice_source_.get(), SD_EVENT_ON);
            else
                schedule_pass(false);
        });
        processes_ = ProcessEvents::start(event_.get(), manager_, log_);
        hardware_ = HardwareWatch::start(event_.get(), log_, [this] {
            manager_.expect_changes();
            schedule_pass(true);
        });
        folders_ = FolderWatch::start(event_.get(), manager_.settings().policy_folders,
                                      [this] { reload("a policy file changed"); });
        if (auto done = add_cpuset_watch(); !done) return done;
        sd_event_set_watchdog(event_.get(), 1);
        begin_pass(true);
        return {};
    }

    Result<void> measure() override { return start_measuring(false); }

    Result<void> start_measuring(bool may_skip) {
        if (child_.running()) return fail("a measurement is running already");
        auto started = child_.start(may_skip);
        if (!started) manager_.measured({"", measure::Outcome::failed, started.error().to_string()});
        return started;
    }

    int run() override {
        const int code = sd_event_loop(event_.get());
        sd_notify(0, "STOPPING=1\nSTATUS=putting back what was changed");
        manager_.stop();
        return code < 0 ? 1 : code;
    }

  private:
    Result<void> add_signals() {
        sigset_t handled;
        sigemptyset(&handled);
        for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGCHLD})
            sigaddset(&handled, number);
        ::sigprocmask(SIG_BLOCK, &handled, nullptr);
        int status = sd_event_add_signal(event_.get(), nullptr, SIGTERM, nullptr,
                                         nullptr); // null handler: leave the loop
        if (status >= 0) status = sd_event_add_signal(event_.get(), nullptr, SIGINT, nullptr, nullptr);
        if (status >= 0) status = sd_event_add_signal(event_.get(), nullptr, SIGHUP, on_hangup, this);
        if (status < 0) return fail("cannot watch signals", {}, -status);
        return {};
    }

    Result<void> add_timers() {
        sd_event_source* source = nullptr;
        int status =
            sd_event_add_time_relative(event_.get(), &source, CLOCK_MONOTONIC,
                                       usec(manager_.settings().reconcile_interval), 0, on_reconcile, this);
        reconcile_timer_.reset(status >= 0 ? source : nullptr);
        if (status >= 0) {
            status = sd_event_add_defer(event_.get(), &source, on_slice, this);
            slice_source_.reset(status >= 0 ? source : nullptr);
        }
        if (status >= 0) status = sd_event_source_set_priority(slice_source_.get(), SD_EVENT_PRIORITY_IDLE);
        if (status >= 0) status = sd_event_source_set_enabled(slice_source_.get(), SD_EVENT_OFF);
        if (status >= 0) status = add_settle_timer();
        if (status >= 0) status = add_measure_timer();
        if (status < 0) return fail("cannot set up timers", {}, -status);
        return {};
    }

    Result<void> add_cpuset_watch() {
        sd_event_source* source = nullptr;
        const int status = sd_event_add_post(event_.get(), &source, on_handled, this);
        if (status < 0) return fail("cannot watch cpusets", {}, -status);
        after_all_.reset(source);
        cpusets_ = std::make_unique<CpusetWatch>(event_.get(), manager_.cgroup_folder(), [this] {
            manager_.expect_changes();
            schedule_pass(false);
        });
        return {};
    }

    int add_settle_timer() {
        sd_event_source* source = nullptr;
        const int status = sd_event_add_time(event_.get(), &source, CLOCK_MONOTONIC, 0, 0, on_settled, this);
        if (status < 0) return status;
        settle_timer_.reset(source);
        return sd_event_source_set_enabled(source, SD_EVENT_OFF);
    }

    int add_measure_timer() {
        if (manager_.settings().measure.interval.count() == 0) return 0;
        sd_event_source* source = nullptr;
        const int status = sd_event_add_time_relative(event_.get(), &source, CLOCK_MONOTONIC,
                                                      next_measurement(), 0, on_measure, this);
        if (status >= 0) measure_timer_.reset(source);
        return status;
    }

    /// Microseconds from now.
    std::uint64_t next_measurement() {
        const auto& measure = manager_.settings().measure;
        return usec(measure.interval) +
               std::uniform_int_distribution<std::uint64_t>(0, usec(measure.random_delay))(random_);
    }

    template <class Duration>
    static std::uint64_t usec(Duration duration) {
        return static_cast<std::uint64_t>(duration_cast<microseconds>(duration).count());
    }

    void begin_pass(bool machine_changed) {
        machine_changed_ = false;
        manager_.begin_reconcile(machine_changed);
    }

    /// Another pass soon, not at once: events that ask for one come many together.
    void schedule_pass(bool machine_changed) {
        machine_changed_ = machine_changed_ || machine_changed;
        int enabled = SD_EVENT_OFF;
        sd_event_source_get_enabled(settle_timer_.get(), &enabled);
        if (enabled != SD_EVENT_OFF) return;
        sd_event_source_set_time_relative(settle_timer_.get(), usec(settle));
        sd_event_source_set_enabled(settle_timer_.get(), SD_EVENT_ONESHOT);
    }

    void pass_finished() {
        has_passed_ = true;
        if (processes_) processes_->follow(manager_.has_processes());
        if (!ready_) {
            ready_ = true;
            sd_notify(0, "READY=1");
            log_.info("ready");
        }
        std::size_t processes = 0;
        std::size_t threads = 0;
        manager_.count(processes, threads);
        sd_notifyf(0, "STATUS=%zu policies, %zu processes with %zu threads, %zu queues under policy",
                   manager_.world()->policies().policies.size(), processes, threads,
                   manager_.world()->placements().queues.size());
    }

    void reload(const char* why) {
        sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
                   static_cast<unsigned long long>(usec(steady_clock::now().time_since_epoch())));
        log_.info(fmt::format("reloading: {}", why));
        static_cast<void>(
            manager_.reload().has_value()); // it has logged what is wrong; the running set stays
        sd_notify(0, "READY=1");
    }

    static EventLoop& self(void* userdata) { return *static_cast<EventLoop*>(userdata); }

    static int on_hangup(sd_event_source*, const signalfd_siginfo*, void* userdata) {
        self(userdata).reload("SIGHUP");
        return 0;
    }

    static int on_slice(sd_event_source* source, void* userdata) {
        auto& loop = self(userdata);
        const auto started = steady_clock::now();
        const auto is_over = [&] {
            const auto passed = steady_clock::now() - started;
            return passed >= slice ||
                   (passed >= short_slice && loop.processes_ && loop.processes_->waiting());
        };
        if (loop.manager_.reconcile_step(is_over)) {
            sd_event_source_set_enabled(source, SD_EVENT_OFF);
            loop.pass_finished();
        }
        return 0;
    }

    /// After whatever else was handled: processes under policy may live in other cpusets than before.
    static int on_handled(sd_event_source*, void* userdata) {
        auto& loop = self(userdata);
        if (loop.manager_.reconciling() ||
            (loop.manager_.cpusets() == loop.watched_cpusets_ && !loop.has_passed_))
            return 0;
        loop.has_passed_ = false;
        loop.watched_cpusets_ = loop.manager_.cpusets();
        loop.cpusets_->follow(loop.manager_.cpuset_paths());
        return 0;
    }

    static int on_reconcile(sd_event_source* source, std::uint64_t, void* userdata) {
        auto& loop = self(userdata);
        loop.begin_pass(true);
        sd_event_source_set_time_relative(source, usec(loop.manager_.settings().reconcile_interval));
        sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        return 0;
    }

    static int on_settled(sd_event_source*, std::uint64_t, void* userdata) {
        auto& loop = self(userdata);
        // Who asks again and again must not keep a long pass from its end: what it has seen already is looked
        // at in the next one.
        if (loop.manager_.reconciling())
            loop.schedule_pass(false);
        else
            loop.begin_pass(loop.machine_changed_);
        return 0;
    }

    static int on_measure(sd_event_source* source, std::uint64_t, void* userdata) {
        auto& loop = self(userdata);
        static_cast<void>(
            loop.start_measuring(true).has_value()); // a run that could not start is recorded by the manager
        sd_event_source_set_time_relative(source, loop.next_measurement());
        sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        return 0;
    }

    app::Manager& manager_;
    app::Log& log_;
    LoopHandle event_;
    MeasurementChild child_;
    std::minstd_rand random_{std::random_device{}()};
    Source reconcile_timer_, slice_source_, settle_timer_, measure_timer_, after_all_;
    std::unique_ptr<ProcessEvents> processes_;
    std::unique_ptr<HardwareWatch> hardware_;
    std::unique_ptr<FolderWatch> folders_;
    std::unique_ptr<CpusetWatch> cpusets_;
    std::size_t watched_cpusets_ = 0;
    bool has_passed_ =
        false; ///< a pass has ended since cpusets were last followed: they may be others, not only more
    bool machine_changed_ = false;
    bool ready_ = false;
};

} // namespace

Result<std::unique_ptr<Loop>> Loop::create(app::Manager& manager, app::Log& log) {
    sd_event* raw = nullptr;
    const int status = sd_event_new(&raw);
    if (status < 0) return fail("cannot make an event loop", {}, -status);
    return std::make_unique<EventLoop>(manager, log, LoopHandle(raw));
}

} // namespace affinityd::events
