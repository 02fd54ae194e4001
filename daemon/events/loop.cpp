// SPDX-License-Identifier: Apache-2.0
#include "events/loop.hpp"

#include "app/group_members.hpp"
#include "base/counted.hpp"
#include "events/cgroup_watch.hpp"
#include "events/folder_watch.hpp"
#include "events/hardware_watch.hpp"
#include "events/interrupt_watch.hpp"
#include "events/listener_watch.hpp"
#include "events/look_watch.hpp"
#include "events/measure_schedule.hpp"
#include "events/pass_schedule.hpp"
#include "events/process_events.hpp"
#include "events/slices.hpp"

#include <csignal>

#include <fmt/format.h>
#include <systemd/sd-daemon.h>

namespace affinityd::events {

namespace {

using std::chrono::steady_clock;

/// What watches the machine: all of it ends before the daemon puts things back.
struct Watches {
    std::unique_ptr<ProcessEvents> processes;
    std::unique_ptr<HardwareWatch> hardware;
    std::unique_ptr<FolderWatch> folders;
    std::unique_ptr<CgroupWatch> cgroups;
    std::unique_ptr<InterruptWatch> interrupts;
    std::unique_ptr<ListenerWatch> listeners;
    std::unique_ptr<LookWatch> steering;
    struct {
        Source irqbalance, names, arguments;
    } answers;
    std::size_t watched_cpusets = 0;
};

class EventLoop final : public Loop {
  public:
    EventLoop(app::Manager& manager, app::Log& log, LoopHandle event, std::function<bool()> is_restarted)
        : manager_(manager), log_(log), event_(std::move(event)), is_restarted_(std::move(is_restarted)),
          slices_({[this](const auto& out_of_time) { return manager_.step(out_of_time); },
                   [this] { return watches_.processes && watches_.processes->waiting(); },
                   [this] { all_done(); }}),
          passes_(manager.in_force().settings.reconcile_interval,
                  [this](bool periodic) {
                      follow_links();
                      manager_.begin_pass(periodic);
                  }),
          measuring_(event_.get(), manager.in_force().settings,
                     [this](const auto& run) { return manager_.measured(run); }) {}

    [[nodiscard]] sd_event* event() const override { return event_.get(); }
    Result<void> subscribe() override;
    void measure(app::Answer answer, app::Until until) override;
    int run() override;

  private:
    Result<void> add_signals();
    void watch_groups();
    Result<void> watch_answers();
    void all_done();
    void stop();
    void leave_when_quiet();
    void reload(const char* why, app::ReloadReason reason);
    void follow_links();
    [[nodiscard]] std::string status_line() const;

    static EventLoop& self(void* userdata) { return *static_cast<EventLoop*>(userdata); }
    static int on_term(sd_event_source*, const signalfd_siginfo*, void* userdata);
    static int on_hangup(sd_event_source*, const signalfd_siginfo*, void* userdata);
    static int on_irqbalance(sd_event_source*, int, std::uint32_t, void* userdata);
    static int on_names(sd_event_source*, int, std::uint32_t, void* userdata);
    static int on_arguments(sd_event_source*, int, std::uint32_t, void* userdata);
    void handled();

    app::Manager& manager_;
    app::Log& log_;
    LoopHandle event_;
    std::function<bool()> is_restarted_;
    Slices slices_;
    PassSchedule passes_;
    MeasureSchedule measuring_;
    Watches watches_;
    Timer quiet_timer_{[this] { leave_when_quiet(); }};
    bool has_passed_ =
        false; ///< a pass has ended since cpusets were last followed: they may be others, not only more
    bool is_ready_ = false;
    bool is_stopping_ = false;
};

Result<void> EventLoop::subscribe() {
    if (auto done = add_signals(); !done) return done;
    slices_.add_to(event_.get());
    if (auto done = passes_.add_to(event_.get()); !done) return done;
    if (auto done = measuring_.start(); !done) return done;
    if (auto done = quiet_timer_.add_to(event_.get()); !done) return done;
    manager_.work().on_work([this](app::Work::Urgency urgency) {
        if (urgency == app::Work::Urgency::now)
            slices_.begin();
        else if (is_stopping_)
            return;
        else if (urgency == app::Work::Urgency::soon)
            passes_.begin_soon();
        else
            passes_.begin_later();
    });
    auto processes = ProcessEvents::start(event_.get(), manager_, log_);
    if (!processes) return std::unexpected(std::move(processes.error()));
    watches_.processes = std::move(*processes);
    watches_.hardware = HardwareWatch::start(event_.get(), log_,
                                             {[this] {
                                                  manager_.expect_changes();
                                                  manager_.link_changed("");
                                              },
                                              [this](const auto& nic) { manager_.link_changed(nic); }});
    watches_.folders = FolderWatch::start(event_.get(), manager_.in_force().settings.policy_folders, [this] {
        reload("a policy file changed", app::ReloadReason::saved);
    });
    watches_.interrupts = std::make_unique<InterruptWatch>(manager_);
    if (auto done = watches_.interrupts->add_to(event_.get()); !done) return done;
    watches_.listeners = std::make_unique<ListenerWatch>(manager_);
    if (auto done = watches_.listeners->add_to(event_.get()); !done) return done;
    auto& steering = manager_.steering();
    watches_.steering = std::make_unique<LookWatch>(
        LookWatch::Looker{"listeners", steering.fd(), [&] { return steering.next_look(); },
                          [&] { steering.look(); }, [&] { steering.take_events(); }});
    if (auto done = watches_.steering->add_to(event_.get()); !done) return done;
    watch_groups();
    if (auto done = watch_answers(); !done) return done;
    sd_event_set_watchdog(event_.get(), 1);
    manager_.begin_pass(true);
    return {};
}

Result<void> EventLoop::add_signals() {
    block_signals();
    int status = sd_event_add_signal(event_.get(), nullptr, SIGTERM, on_term, this);
    if (status >= 0) status = sd_event_add_signal(event_.get(), nullptr, SIGINT, on_term, this);
    if (status >= 0) status = sd_event_add_signal(event_.get(), nullptr, SIGHUP, on_hangup, this);
    if (status < 0) return fail("cannot watch signals", {}, -status);
    return {};
}

void EventLoop::watch_groups() {
    auto& tasks = manager_.tasks();
    const auto& root = tasks.sources().root();
    const CgroupWatch::Listeners listeners{[this] {
                                               manager_.expect_changes();
                                               passes_.begin_soon();
                                           },
                                           [this, &tasks, &root](std::vector<std::string> groups) {
                                               manager_.work().add(std::make_unique<app::GroupMembers>(
                                                   root.sys(), tasks, std::move(groups), [this] {
                                                       if (watches_.cgroups)
                                                           watches_.cgroups->leave_to_pass();
                                                   }));
                                           },
                                           [this] { passes_.begin_soon(); }};
    watches_.cgroups = std::make_unique<CgroupWatch>(event_.get(), log_, root.cgroup_folder(), listeners);
    if (const auto begun = watches_.cgroups->start(); !begun) {
        log_.warn(begun.error().to_string());
        watches_.cgroups.reset();
    }
}

/// Those of irqbalance, of processes asked for their arguments, and of the name service. Where the kernel has
/// no descriptor left for one, it is not asked.
Result<void> EventLoop::watch_answers() {
    sd_event_source* source = nullptr;
    if (const int fd = manager_.talking().coexistence.fd(); fd >= 0) {
        const int status = sd_event_add_io(event_.get(), &source, fd, EPOLLIN, on_irqbalance, this);
        if (status < 0) return fail("cannot watch irqbalance's answers", {}, -status);
        watches_.answers.irqbalance.reset(source);
    }
    if (const auto* lines = manager_.tasks().sources().command_lines();
        lines != nullptr && lines->fd() >= 0) {
        const int status = sd_event_add_io(event_.get(), &source, lines->fd(), EPOLLIN, on_arguments, this);
        if (status < 0) return fail("cannot watch the reading of arguments", {}, -status);
        watches_.answers.arguments.reset(source);
    }
    const auto* service = manager_.tasks().sources().name_service();
    if (service == nullptr || service->fd() < 0) return {};
    const int status = sd_event_add_io(event_.get(), &source, service->fd(), EPOLLIN, on_names, this);
    if (status < 0) return fail("cannot watch the name service", {}, -status);
    watches_.answers.names.reset(source);
    return {};
}

void EventLoop::measure(app::Answer answer, app::Until until) {
    if (is_stopping_) return answer(fail("the daemon is stopping"));
    measuring_.measure(std::move(answer), until);
}

int EventLoop::run() {
    int status = 0;
    while (status >= 0 && sd_event_get_state(event_.get()) != SD_EVENT_FINISHED) {
        status = sd_event_prepare(event_.get());
        if (status == 0) status = sd_event_wait(event_.get(), ~0ULL);
        if (status <= 0) continue;
        status = sd_event_dispatch(event_.get());
        handled();
    }
    int code = 0;
    if (status >= 0) status = sd_event_get_exit_code(event_.get(), &code);
    return status < 0 || code < 0 ? 1 : code;
}

std::string EventLoop::status_line() const {
    const auto& tasks = manager_.tasks().table();
    const auto fault = app::summary_of(manager_.in_force().load);
    return fmt::format("{}{}, {} with {}, {} under policy", fault.empty() ? fault : fault + "; ",
                       counted(manager_.in_force().world->policies().policies.size(), "policy", "policies"),
                       counted(tasks.processes().size(), "process", "processes"),
                       counted(tasks.threads(), "thread"),
                       counted(manager_.in_force().world->placements().queues.size(), "queue"));
}

/// No work is left for slices: the pass has ended, among other things.
void EventLoop::all_done() {
    if (is_stopping_) return;
    has_passed_ = true;
    watches_.processes->follow();
    watches_.interrupts->follow();
    watches_.listeners->follow();
    watches_.steering->follow();
    if (!is_ready_) {
        is_ready_ = true;
        sd_notify(0, "READY=1");
        log_.info("ready");
    }
    passes_.use(manager_.in_force().settings.reconcile_interval);
    measuring_.use(manager_.in_force().settings.measure);
    sd_notify(0, ("STATUS=" + status_line()).c_str());
}

void EventLoop::stop() {
    if (std::exchange(is_stopping_, true)) return;
    sd_notify(0, "STOPPING=1\nSTATUS=ending");
    passes_.end();
    measuring_.end();
    watches_.processes.reset();
    watches_.hardware.reset();
    watches_.folders.reset();
    watches_.cgroups.reset();
    watches_.interrupts.reset();
    watches_.listeners.reset();
    watches_.steering.reset();
    const auto leave = [this] { leave_when_quiet(); };
    if (is_restarted_())
        manager_.begin_handover(leave);
    else
        manager_.begin_stop(leave);
}

void EventLoop::leave_when_quiet() {
    constexpr std::chrono::milliseconds pause{20};
    if (manager_.is_quiet())
        sd_event_exit(event_.get(), 0);
    else
        quiet_timer_.arm(pause);
}

void EventLoop::reload(const char* why, app::ReloadReason reason) {
    sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld",
               static_cast<long long>(std::chrono::duration_cast<std::chrono::microseconds>(
                                          steady_clock::now().time_since_epoch())
                                          .count()));
    log_.info(fmt::format("reloading: {}", why));
    // It has logged what is wrong.
    manager_.reload([](const auto&) { sd_notify(0, "READY=1"); }, app::Until::begun, reason);
}

/// Links to policies that lead elsewhere by now, which no folder's events tell of.
void EventLoop::follow_links() {
    if (is_stopping_ || !manager_.policies_changed()) return;
    if (watches_.folders) watches_.folders->watch_all();
    reload("a policy file leads elsewhere, or has changed", app::ReloadReason::saved);
}

int EventLoop::on_term(sd_event_source*, const signalfd_siginfo*, void* userdata) {
    self(userdata).stop();
    return 0;
}

int EventLoop::on_hangup(sd_event_source*, const signalfd_siginfo*, void* userdata) {
    if (!self(userdata).is_stopping_) self(userdata).reload("SIGHUP", app::ReloadReason::asked);
    return 0;
}

int EventLoop::on_irqbalance(sd_event_source*, int, std::uint32_t, void* userdata) {
    self(userdata).manager_.talking().coexistence.handle();
    return 0;
}

int EventLoop::on_names(sd_event_source*, int, std::uint32_t, void* userdata) {
    auto& loop = self(userdata);
    // Users have names now that were numbers when their processes were matched.
    if (loop.manager_.tasks().sources().name_service()->take_answers()) loop.passes_.begin_soon();
    return 0;
}

/// Of processes that did not answer in time: at most a few at once.
int EventLoop::on_arguments(sd_event_source*, int, std::uint32_t, void* userdata) {
    auto& loop = self(userdata);
    auto& tasks = loop.manager_.tasks();
    const auto late = tasks.sources().command_lines()->take_late();
    if (loop.is_stopping_) return 0;
    for (const auto& process : late.processes)
        tasks.process_changed(process.tid);
    if (late.has_room) loop.passes_.begin_soon();
    return 0;
}

/// After whatever else was handled: processes under policy may live in other cpusets than before.
void EventLoop::handled() {
    if (is_stopping_) return;
    watches_.processes->wait_for_due();
    const auto& sources = manager_.tasks().sources();
    if (manager_.work().passing() || (sources.cpusets() == watches_.watched_cpusets && !has_passed_)) return;
    has_passed_ = false;
    watches_.watched_cpusets = sources.cpusets();
    if (watches_.cgroups) watches_.cgroups->follow(sources.cpuset_paths());
}

} // namespace

void Loop::block_signals() {
    sigset_t handled;
    sigemptyset(&handled);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGCHLD})
        sigaddset(&handled, number);
    ::sigprocmask(SIG_BLOCK, &handled, nullptr);
    // A reader of our output that ends, or a limit on files, is an error of that write, and no end of ours.
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGXFSZ, SIG_IGN);
    // Who started us may ignore it, and then nobody could wait for our children.
    ::signal(SIGCHLD, SIG_DFL);
}

Result<std::unique_ptr<Loop>> Loop::create(app::Manager& manager, app::Log& log,
                                           std::function<bool()> is_restarted) {
    sd_event* raw = nullptr;
    const int status = sd_event_new(&raw);
    if (status < 0) return fail("cannot make an event loop", {}, -status);
    return std::make_unique<EventLoop>(manager, log, LoopHandle(raw), std::move(is_restarted));
}

} // namespace affinityd::events
