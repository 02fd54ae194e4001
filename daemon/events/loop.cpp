// SPDX-License-Identifier: Apache-2.0
#include "events/loop.hpp"

#include "base/text.hpp"
#include "core/queues.hpp"
#include "core/tasks.hpp"

#include <algorithm>
#include <csignal>

#include <fmt/format.h>
#include <systemd/sd-daemon.h>

namespace affinityd::events {

namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds longest_slice{2};    ///< after which the loop looks at its other sources
constexpr std::chrono::microseconds shortest_slice{100}; ///< the same while a process waits to be placed
constexpr std::chrono::microseconds between_looks{20};   ///< whether one waits: each is a system call
constexpr std::chrono::milliseconds soon{300};           ///< what asks for a pass comes in bursts
constexpr std::chrono::milliseconds later{2000};         ///< what any user can ask for
/// A foreign mask of an interrupt stays for less than five seconds.
constexpr std::chrono::seconds between_glances{3};

} // namespace

Loop::Loop(core::Daemon& manager, core::Log& log, LoopHandle event, std::function<bool()> is_restarted)
    : manager_(manager), log_(log), event_(std::move(event)), is_restarted_(std::move(is_restarted)),
      measuring_(event_.get(), manager.in_force().settings,
                 [this](const auto& run) { return manager_.measured(run); }) {}

Result<void> Loop::subscribe() {
    if (auto done = add_signals(); !done) return done;
    if (auto done = add_table(); !done) return done;
    if (auto done = measuring_.start(); !done) return done;
    manager_.work().on_work([this](core::Work::Urgency urgency) {
        if (urgency == core::Work::Urgency::now)
            slice_.arm();
        else
            want_pass(urgency == core::Work::Urgency::soon ? soon : later);
    });
    auto processes = ProcessEvents::start(event_.get(), manager_, log_);
    if (!processes) return std::unexpected(std::move(processes.error()));
    watches_.processes = std::move(*processes);
    const HardwareWatch::Changed changed{[this] {
                                             manager_.expect_changes();
                                             manager_.link_changed("");
                                         },
                                         [this](const auto& nic) { manager_.link_changed(nic); }};
    watches_.hardware = std::make_unique<HardwareWatch>(event_.get(), log_, changed);
    watches_.hardware->start();
    const auto& folders = manager_.in_force().settings.policy_folders;
    watches_.folders = std::make_unique<FolderWatch>(
        event_.get(), folders, [this] { reload("a policy file changed", core::ReloadReason::saved); });
    if (auto done = watches_.folders->start(); !done) return done;
    watch_groups();
    sd_event_set_watchdog(event_.get(), 1);
    manager_.begin_pass(true);
    return {};
}

Result<void> Loop::add_signals() {
    block_signals();
    int status = sd_event_add_signal(event_.get(), nullptr, SIGTERM, on_term, this);
    if (status >= 0) status = sd_event_add_signal(event_.get(), nullptr, SIGINT, on_term, this);
    if (status >= 0) status = sd_event_add_signal(event_.get(), nullptr, SIGHUP, on_hangup, this);
    if (status < 0) return fail("cannot watch signals", {}, -status);
    return {};
}

Result<void> Loop::add_table() {
    auto* event = event_.get();
    slice_.add_to(event, SD_EVENT_PRIORITY_IDLE);
    for (auto* timer : {&regular_, &asked_, &glance_, &tick_, &quiet_})
        if (auto done = timer->add_to(event); !done) return done;
    regular_.arm(interval_);
    auto& sources = manager_.tasks().sources();
    const auto fd_of = [](const auto* one) { return one == nullptr ? -1 : one->fd(); };
    Result<void> done;
    for (const auto& behaviour : manager_.shared().behaviours) {
        auto& readable = behaviours_.emplace_back([&one = *behaviour] { one.readable(); });
        if (done) done = readable.add_to(event, behaviour->fd(), "a descriptor of a behaviour");
    }
    if (done) done = arguments_.add_to(event, fd_of(sources.command_lines()), "the reading of arguments");
    if (done) done = names_.add_to(event, fd_of(sources.name_service()), "the name service");
    if (done) done = listed_.add_to(event, fd_of(sources.listeners()), "the list of listeners");
    return done;
}

void Loop::watch_groups() {
    auto& tasks = manager_.tasks();
    const auto& root = tasks.sources().root();
    const CgroupWatch::Listeners listeners{[this] {
                                               manager_.expect_changes();
                                               watches_.has_cpusets = true;
                                               want_pass(soon);
                                           },
                                           [this, &tasks](std::vector<std::string> groups) {
                                               manager_.work().add(
                                                   tasks.look_at_members(std::move(groups), [this] {
                                                       if (watches_.cgroups)
                                                           watches_.cgroups->leave_to_pass();
                                                   }));
                                           },
                                           [this] { want_pass(soon); }};
    watches_.cgroups = std::make_unique<CgroupWatch>(event_.get(), log_, root.cgroup_folder(), listeners);
    if (const auto begun = watches_.cgroups->start(); !begun) {
        log_.warn(begun.error().to_string());
        watches_.cgroups.reset();
    }
}

void Loop::measure(core::Answer answer, core::Until until) {
    if (is_stopping_) return answer(fail("the daemon is stopping"));
    measuring_.measure(std::move(answer), until);
}

/// Left, and not ended by sd_event_exit(3): sd-bus would flush its connections first, which waits up to 90 s
/// for a peer that has not authenticated itself.
int Loop::run() {
    int status = 0;
    while (status >= 0 && !has_left_) {
        status = sd_event_prepare(event_.get());
        if (status == 0) status = sd_event_wait(event_.get(), ~0ULL);
        if (status <= 0) continue;
        status = sd_event_dispatch(event_.get());
        handled();
    }
    return status < 0 ? 1 : 0;
}

std::string Loop::status_line() const {
    const auto& tasks = manager_.tasks().table();
    const auto fault = core::summary_of(manager_.in_force().load);
    const auto& targets = manager_.in_force().world->placements().queues;
    const auto placed = std::ranges::count_if(targets, [](const auto& target) { return target.off.empty(); });
    return fmt::format("{}{}, {} with {}, {} under policy", fault.empty() ? fault : fault + "; ",
                       counted(manager_.in_force().world->policies().policies.size(), "policy", "policies"),
                       counted(tasks.processes().size(), "process", "processes"),
                       counted(tasks.threads(), "thread"),
                       counted(static_cast<std::size_t>(placed), "queue"));
}

/// Long work has slices at idle priority, so that no event waits behind more than one of them.
void Loop::slice() {
    const auto started = steady_clock::now();
    auto next_look = started + shortest_slice;
    const auto is_over = [&] {
        const auto now = steady_clock::now();
        if (now - started >= longest_slice) return true;
        if (now < next_look) return false;
        next_look = now + between_looks;
        return watches_.processes && watches_.processes->waiting();
    };
    if (manager_.step(is_over))
        all_done();
    else
        slice_.arm();
}

void Loop::want_pass(std::chrono::milliseconds delay) {
    if (!is_stopping_ && asked_.due() > steady_clock::now() + delay) asked_.arm(delay);
}

void Loop::begin_regular_pass() {
    regular_.arm(interval_);
    begin_pass(true);
}

/// A regular pass reads the hardware again.
void Loop::begin_pass(bool is_regular) {
    follow_links();
    const bool has_new_pods = std::exchange(watches_.has_cpusets, false) && follows_pods();
    manager_.begin_pass(is_regular || has_new_pods);
}

/// The kernel tells nothing of a write to the mask of an interrupt.
void Loop::glance_at_interrupts() {
    if (!manager_.queues().guards_interrupts()) return;
    glance_.arm(between_glances);
    if (manager_.work().is_urgent_full()) return;
    manager_.work().add_urgent(manager_.queues().glance());
}

/// A process listens that did not: a pass finds it.
void Loop::take_listeners() {
    manager_.tasks().sources().listeners()->take_news();
    want_pass(soon);
}

/// No work is left for slices: the pass has ended, among other things.
void Loop::all_done() {
    if (is_stopping_) return;
    has_passed_ = true;
    watches_.processes->follow();
    if (!glance_.is_armed() && manager_.queues().guards_interrupts()) glance_.arm(between_glances);
    if (!is_ready_) {
        is_ready_ = true;
        sd_notify(0, "READY=1");
        log_.info("ready");
    }
    const auto interval = manager_.in_force().settings.reconcile_interval;
    if (std::exchange(interval_, interval) != interval) regular_.arm(interval_);
    measuring_.use(manager_.in_force().settings.measure);
    sd_notify(0, ("STATUS=" + status_line()).c_str());
}

void Loop::stop() {
    if (std::exchange(is_stopping_, true)) return;
    sd_notify(0, "STOPPING=1\nSTATUS=ending");
    for (auto* timer : {&regular_, &asked_, &glance_, &tick_})
        timer->disarm();
    listed_.end();
    measuring_.end();
    watches_.processes.reset();
    watches_.hardware.reset();
    watches_.folders.reset();
    watches_.cgroups.reset();
    const auto leave = [this] { leave_when_quiet(); };
    if (is_restarted_())
        manager_.begin_handover(leave);
    else
        manager_.begin_stop(leave);
}

void Loop::leave_when_quiet() {
    constexpr std::chrono::milliseconds pause{20};
    if (manager_.is_quiet())
        has_left_ = true;
    else
        quiet_.arm(pause);
}

void Loop::reload(const char* why, core::ReloadReason reason) {
    sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%lld",
               static_cast<long long>(std::chrono::duration_cast<std::chrono::microseconds>(
                                          steady_clock::now().time_since_epoch())
                                          .count()));
    log_.info(fmt::format("reloading: {}", why));
    // The manager logs what is wrong.
    manager_.reload([](const auto&) { sd_notify(0, "READY=1"); }, core::Until::begun, reason);
}

/// Links to policies that lead elsewhere by now, which no folder's events tell of.
void Loop::follow_links() {
    if (is_stopping_ || !manager_.policies_changed()) return;
    if (watches_.folders) watches_.folders->watch_all();
    reload("a policy file leads elsewhere, or has changed", core::ReloadReason::saved);
}

int Loop::on_term(sd_event_source*, const signalfd_siginfo*, void* userdata) {
    self(userdata).stop();
    return 0;
}

int Loop::on_hangup(sd_event_source*, const signalfd_siginfo*, void* userdata) {
    if (!self(userdata).is_stopping_) self(userdata).reload("SIGHUP", core::ReloadReason::asked);
    return 0;
}

void Loop::tick() {
    for (const auto& behaviour : manager_.shared().behaviours)
        if (behaviour->due() <= steady_clock::now()) behaviour->tick();
}

/// Users have names now that were numbers when their processes were matched.
void Loop::take_names() {
    if (manager_.tasks().sources().name_service()->take_answers()) want_pass(soon);
}

/// Processes that did not answer in time have answered: at most a few at once.
void Loop::take_arguments() {
    auto& tasks = manager_.tasks();
    const auto late = tasks.sources().command_lines()->take_late();
    if (is_stopping_) return;
    for (const auto& process : late)
        tasks.process_changed(process.tid);
    if (tasks.sources().command_lines()->take_refused() && !late.empty()) want_pass(later);
}

/// After whatever else was handled: processes under policy may live in other cpusets than before.
void Loop::handled() {
    if (is_stopping_) return;
    watches_.processes->wait_for_due();
    auto due = Timer::never;
    for (const auto& behaviour : manager_.shared().behaviours)
        due = std::min(due, behaviour->due());
    tick_.arm_at(due);
    const auto& sources = manager_.tasks().sources();
    if (manager_.work().passing() || (sources.cpusets() == watches_.watched_cpusets && !has_passed_)) return;
    has_passed_ = false;
    watches_.watched_cpusets = sources.cpusets();
    if (watches_.cgroups) watches_.cgroups->follow(sources.cpuset_paths(), follows_pods());
}

void Loop::block_signals() {
    sigset_t handled;
    sigemptyset(&handled);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGCHLD})
        sigaddset(&handled, number);
    ::sigprocmask(SIG_BLOCK, &handled, nullptr);
    // A reader of our output that ends, or a limit on files, is an error of that write, and no end of ours.
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGXFSZ, SIG_IGN);
    // Our parent may ignore it, and then we could not wait for our children.
    ::signal(SIGCHLD, SIG_DFL);
}

Result<std::unique_ptr<Loop>> Loop::create(core::Daemon& manager, core::Log& log,
                                           std::function<bool()> is_restarted) {
    sd_event* raw = nullptr;
    const int status = sd_event_new(&raw);
    if (status < 0) return fail("cannot make an event loop", {}, -status);
    return std::make_unique<Loop>(manager, log, LoopHandle(raw), std::move(is_restarted));
}

} // namespace affinityd::events
