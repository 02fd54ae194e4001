// SPDX-License-Identifier: Apache-2.0
#include "events/hardware_watch.hpp"

#include <array>
#include <cerrno>
#include <set>
#include <system_error>

#include <linux/netlink.h>
#include <net/if.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <sys/socket.h>
#include <unistd.h>

namespace affinityd::events {

namespace {

constexpr const char* udev_runs = "/run/udev/control"; ///< what sd-device asks, too
constexpr int kernel_uevents = 1; ///< the multicast group the kernel sends to; udev passes on to another

std::string reason(int status) { return std::generic_category().message(-status); }

/// Messages about addresses have a number in place of the name. "": the interface has gone.
std::string name_of(const netdev::LinkEvent& event) {
    std::array<char, IF_NAMESIZE> name{};
    if (!event.name.empty() || ::if_indextoname(event.ifindex, name.data()) == nullptr) return event.name;
    return name.data();
}

} // namespace

bool is_cpu_uevent(std::string_view message) {
    for (std::size_t at = message.find('\0'); at < message.size(); at = message.find('\0', at + 1))
        if (message.substr(at + 1).starts_with(std::string_view("SUBSYSTEM=cpu\0", 14))) return true;
    return false;
}

std::unique_ptr<HardwareWatch> HardwareWatch::start(sd_event* event, app::Log& log, Changed changed) {
    auto watch = std::make_unique<HardwareWatch>(std::move(changed));
    if (const int status = watch->watch_cpus(event); status < 0)
        log.warn("CPUs that come and go are noticed by the periodic pass only: " + reason(status));
    if (const int status = watch->watch_links(event); status < 0)
        log.warn("interfaces that change are noticed by the periodic pass only: " + reason(status));
    return watch;
}

int HardwareWatch::watch_cpus(sd_event* event) {
    // sd-device gives what udev passes on. Where none runs (containers, small systems) it would be silent for
    // ever.
    if (::access(udev_runs, F_OK) != 0) return watch_cpus_without_udev(event);
    sd_device_monitor* monitor = nullptr;
    int status = sd_device_monitor_new(&monitor);
    monitor_.reset(monitor);
    if (status >= 0) status = sd_device_monitor_filter_add_match_subsystem_devtype(monitor, "cpu", nullptr);
    if (status >= 0) status = sd_device_monitor_attach_event(monitor, event);
    if (status >= 0) status = sd_device_monitor_start(monitor, on_device, this);
    return status;
}

int HardwareWatch::watch_links(sd_event* event) {
    auto monitor = netdev::LinkMonitor::open();
    if (!monitor) return monitor.error().code > 0 ? -monitor.error().code : -EPROTO;
    links_.emplace(std::move(*monitor));
    sd_event_source* source = nullptr;
    const int status = sd_event_add_io(event, &source, links_->fd(), EPOLLIN, on_link, this);
    if (status >= 0) link_source_.reset(source);
    return status;
}

int HardwareWatch::watch_cpus_without_udev(sd_event* event) {
    auto socket = host::open_netlink(NETLINK_KOBJECT_UEVENT);
    if (!socket) return socket.error().code > 0 ? -socket.error().code : -EPROTO;
    uevent_socket_ = std::move(*socket);
    int status = nl_socket_add_membership(uevent_socket_.get(), kernel_uevents);
    if (status < 0) return -EPROTO;
    sd_event_source* source = nullptr;
    status =
        sd_event_add_io(event, &source, nl_socket_get_fd(uevent_socket_.get()), EPOLLIN, on_uevent, this);
    if (status >= 0) uevent_source_.reset(source);
    return status;
}

int HardwareWatch::on_device(sd_device_monitor*, sd_device*, void* userdata) {
    static_cast<HardwareWatch*>(userdata)->changed_.cpus();
    return 0;
}

int HardwareWatch::on_uevent(sd_event_source*, int fd, std::uint32_t, void* userdata) {
    std::array<char, 8192> message; // NOLINT: written by recvfrom only; the kernel's bound is 2 KiB of keys
    bool is_cpu = false;
    constexpr int at_once = 256; // then others have their turn; what is left wakes the loop again
    for (int i = 0; i < at_once; ++i) {
        sockaddr_nl sender{};
        socklen_t size = sizeof sender;
        const auto got = ::recvfrom(fd, message.data(), message.size(), MSG_DONTWAIT,
                                    reinterpret_cast<sockaddr*>(&sender), &size);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == ENOBUFS) { // what was lost may have been about a CPU
            is_cpu = true;
            continue;
        }
        if (got <= 0) break;
        // Only the kernel has port 0; programs may send to the group as well.
        if (size == sizeof sender && sender.nl_pid == 0)
            is_cpu = is_cpu || is_cpu_uevent({message.data(), static_cast<std::size_t>(got)});
    }
    if (is_cpu) static_cast<HardwareWatch*>(userdata)->changed_.cpus();
    return 0;
}

int HardwareWatch::on_link(sd_event_source* source, int, std::uint32_t, void* userdata) {
    // Only names are taken from the messages: the receiver reads the machine itself.
    auto* watch = static_cast<HardwareWatch*>(userdata);
    const auto drained = watch->links_->drain();
    // Broken for good: the periodic pass goes on looking.
    if (!drained) sd_event_source_set_enabled(source, SD_EVENT_OFF);
    std::set<std::string> names;
    if (!drained || drained->lost) names.insert("");
    if (drained)
        for (const auto& event : drained->events)
            names.insert(name_of(event));
    for (const auto& name : names)
        watch->changed_.link(name);
    return 0;
}

} // namespace affinityd::events
