// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/log.hpp"
#include "events/sources.hpp"
#include "events/subscription.hpp"
#include "host/fd.hpp"
#include "netdev/link_monitor.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace affinityd::events {

/// True if a uevent of the kernel ("online@/devices/system/cpu/cpu3", then KEY=VALUE, each ended by a NUL) is
/// about a CPU. Accepts any bytes. Source: lib/kobject_uevent.c.
[[nodiscard]] bool is_cpu_uevent(std::string_view message);

/// Reports changes of the hardware: CPUs that go and come (kernel uevents), links that are added, removed,
/// renamed, go up or down, come from or leave for another namespace, get other addresses or other channels
/// (rtnetlink, ethtool netlink). Each of them may undo settings: virtio_net, for one, resets all of
/// its queues when any CPU goes or comes. A socket that breaks is opened again, and everything is reported as
/// changed then.
class HardwareWatch {
  public:
    struct Changed {
        std::function<void()> cpus;
        /// By the interface's name; "": it may be any.
        std::function<void(const std::string& nic)> link;
    };
    struct Options {
        std::function<Result<std::unique_ptr<netdev::LinkSource>>()> open_links{}; ///< default: the kernel's
        /// A socket for the kernel's uevents, where no udev passes them on; default: the kernel's.
        std::function<Result<host::Fd>()> open_uevents{};
        std::chrono::milliseconds first_pause{1000}; ///< before a broken source is opened again
    };
    /// Watches what it can; the log names what it cannot.
    static std::unique_ptr<HardwareWatch> start(sd_event* event, app::Log& log, Changed changed,
                                                Options options);
    static std::unique_ptr<HardwareWatch> start(sd_event* event, app::Log& log, Changed changed) {
        return start(event, log, std::move(changed), Options{});
    }
    HardwareWatch(sd_event* event, app::Log& log, Changed changed, Options options);
    HardwareWatch(const HardwareWatch&) = delete;
    HardwareWatch& operator=(const HardwareWatch&) = delete;

  private:
    [[nodiscard]] Result<void> watch_cpus(sd_event* event);
    [[nodiscard]] Result<int> open_links();
    [[nodiscard]] Result<void> read_links();
    [[nodiscard]] Result<int> open_uevents();
    [[nodiscard]] Result<void> read_uevents();
    static int on_device(sd_device_monitor*, sd_device*, void* userdata);

    Changed changed_;
    Options options_;
    DeviceMonitor monitor_;
    std::unique_ptr<netdev::LinkSource> links_;
    host::Fd uevents_;
    Subscription link_changes_; ///< of `links_`: ends before it
    Subscription cpu_changes_;  ///< of `uevents_`
};

} // namespace affinityd::events
