// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "app/log.hpp"
#include "events/sources.hpp"
#include "host/netlink.hpp"
#include "netdev/link_monitor.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace affinityd::events {

/// True if a uevent of the kernel ("online@/devices/system/cpu/cpu3", then KEY=VALUE, each ended by a NUL) is
/// about a CPU. Accepts any bytes. Source: lib/kobject_uevent.c.
[[nodiscard]] bool is_cpu_uevent(std::string_view message);

/// Reports changes of the hardware: CPUs that go and come (kernel uevents), links that are added, removed,
/// renamed, go up or down, come from or leave for another namespace, get other addresses or other channels
/// (rtnetlink, ethtool netlink). Each of them may undo settings: virtio_net, for one, resets all of
/// its queues when any CPU goes or comes.
class HardwareWatch {
  public:
    struct Changed {
        std::function<void()> cpus;
        /// By the interface's name; "": it may be any.
        std::function<void(const std::string& nic)> link;
    };
    /// Watches what it can; the log names what it cannot.
    static std::unique_ptr<HardwareWatch> start(sd_event* event, app::Log& log, Changed changed);
    explicit HardwareWatch(Changed changed) : changed_(std::move(changed)) {}
    HardwareWatch(const HardwareWatch&) = delete;
    HardwareWatch& operator=(const HardwareWatch&) = delete;

  private:
    [[nodiscard]] int watch_cpus(sd_event* event);
    [[nodiscard]] int watch_cpus_without_udev(sd_event* event);
    [[nodiscard]] int watch_links(sd_event* event);
    static int on_device(sd_device_monitor*, sd_device*, void* userdata);
    static int on_uevent(sd_event_source*, int fd, std::uint32_t, void* userdata);
    static int on_link(sd_event_source*, int fd, std::uint32_t, void* userdata);

    Changed changed_;
    DeviceMonitor monitor_;
    std::optional<netdev::LinkMonitor> links_;
    Source link_source_;
    host::NetlinkSocket uevent_socket_;
    Source uevent_source_;
};

} // namespace affinityd::events
