// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "core/daemon.hpp"
#include "events/cgroup_watch.hpp"
#include "events/measurement.hpp"
#include "events/process_events.hpp"
#include "events/sources.hpp"
#include "events/watches.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>

namespace affinityd::events {

/// The one event loop. Sources only say that something happened; the manager decides. A full pass runs as an
/// idle-priority source in slices, so that an event never waits behind more than one of them.
class Loop {
  public:
    /// Both must outlive the loop. `is_restarted` is asked once, at SIGTERM: true leaves all masks in place
    /// for the next daemon.
    static Result<std::unique_ptr<Loop>> create(core::Daemon& manager, core::Log& log,
                                                std::function<bool()> is_restarted);
    /// For create().
    Loop(core::Daemon& manager, core::Log& log, LoopHandle event, std::function<bool()> is_restarted);
    Loop(const Loop&) = delete;
    Loop& operator=(const Loop&) = delete;
    /// Keeps signals for the loop. The first thing in main: one that comes while the daemon starts must not
    /// end it half-way.
    static void block_signals();

    [[nodiscard]] sd_event* event() const { return event_.get(); }
    /// Subscribes to everything, then begins the first pass: what happens in between is not missed. Sends
    /// READY=1 to the service manager when that pass is through.
    [[nodiscard]] Result<void> subscribe();
    /// Measures now; the answer is an Error if a measurement is running or none can be started.
    void measure(core::Answer answer, core::Until until);
    /// Runs until SIGTERM or SIGINT; the process's exit code.
    [[nodiscard]] int run();

  private:
    /// The watches of the machine: all end before the daemon puts things back.
    struct Watches {
        std::unique_ptr<ProcessEvents> processes;
        std::unique_ptr<HardwareWatch> hardware;
        std::unique_ptr<FolderWatch> folders;
        std::unique_ptr<CgroupWatch> cgroups;
        std::size_t watched_cpusets = 0;
        bool has_cpusets = false; ///< some were written since the last pass
    };
    Result<void> add_signals();
    Result<void> add_table();
    void watch_groups();
    void slice();
    void all_done();
    void begin_pass(bool is_regular);
    /// A policy goes by the CPUs that containers have for themselves.
    [[nodiscard]] bool follows_pods() const { return manager_.in_force().world->machine().follows_pods; }
    void begin_regular_pass();
    void want_pass(std::chrono::milliseconds delay);
    void glance_at_interrupts();
    void take_listeners();
    void tick();
    void take_names();
    void take_arguments();
    void stop();
    void leave_when_quiet();
    void reload(const char* why, core::ReloadReason reason);
    void follow_links();
    [[nodiscard]] std::string status_line() const;

    static Loop& self(void* userdata) { return *static_cast<Loop*>(userdata); }
    static int on_term(sd_event_source*, const signalfd_siginfo*, void* userdata);
    static int on_hangup(sd_event_source*, const signalfd_siginfo*, void* userdata);
    void handled();

    core::Daemon& manager_;
    core::Log& log_;
    LoopHandle event_;
    std::function<bool()> is_restarted_;
    Measurements measuring_;
    Watches watches_;
    std::chrono::seconds interval_ = manager_.in_force().settings.reconcile_interval;

    // The table of sources.
    Timer regular_{[this] { begin_regular_pass(); }};
    Timer asked_{[this] { begin_pass(false); }};
    Timer glance_{[this] { glance_at_interrupts(); }};
    Timer tick_{[this] { tick(); }}; ///< of behaviours
    Timer quiet_{[this] { leave_when_quiet(); }};
    Descriptor listed_{[this] { take_listeners(); }};
    std::list<Descriptor> behaviours_;
    Descriptor names_{[this] { take_names(); }};
    Descriptor arguments_{[this] { take_arguments(); }};
    Deferred slice_{[this] { slice(); }};
    bool has_passed_ =
        false; ///< a pass has ended since cpusets were last followed: they may be others, not only more
    bool is_ready_ = false;
    bool is_stopping_ = false;
    bool has_left_ = false; ///< all that was to be put back is
};

} // namespace affinityd::events
