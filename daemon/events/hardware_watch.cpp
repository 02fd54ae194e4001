// SPDX-License-Identifier: Apache-2.0
#include "events/hardware_watch.hpp"

#include "netdev/link_monitor.hpp"

#include <array>
#include <cerrno>
#include <cstdint>
#include <set>

#include <linux/netlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

namespace affinityd::events {

namespace {

constexpr const char* udev_runs = "/run/udev/control"; ///< what sd-device asks, too
constexpr std::uint32_t kernel_uevents =
    1; ///< bit of the multicast group that the kernel sends to; udev passes on to another

Result<std::unique_ptr<netdev::LinkSource>> subscribe_to_links() {
    auto monitor = netdev::LinkMonitor::open();
    if (!monitor) return std::unexpected(monitor.error());
    return std::make_unique<netdev::LinkMonitor>(std::move(*monitor));
}

Result<host::Fd> subscribe_to_uevents() {
    host::Fd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT));
    if (!socket) return fail("cannot make a socket for uevents", {}, errno);
    sockaddr_nl group{};
    group.nl_family = AF_NETLINK;
    group.nl_groups = kernel_uevents;
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&group), sizeof group) != 0)
        return fail("cannot subscribe to uevents", {}, errno);
    return socket;
}

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

HardwareWatch::HardwareWatch(sd_event* event, app::Log& log, Changed changed, Options options)
    : changed_(std::move(changed)), options_(std::move(options)),
      link_changes_(event, log,
                    {.what = "changes of interfaces",
                     .open = [this] { return open_links(); },
                     .read = [this] { return read_links(); },
                     .missed = [this] { changed_.link(""); },
                     .first_pause = options_.first_pause}),
      cpu_changes_(event, log,
                   {.what = "changes of CPUs",
                    .open = [this] { return open_uevents(); },
                    .read = [this] { return read_uevents(); },
                    .missed = [this] { changed_.cpus(); },
                    .first_pause = options_.first_pause}) {}

std::unique_ptr<HardwareWatch> HardwareWatch::start(sd_event* event, app::Log& log, Changed changed,
                                                    Options options) {
    if (!options.open_links) options.open_links = subscribe_to_links;
    if (!options.open_uevents) options.open_uevents = subscribe_to_uevents;
    auto watch = std::make_unique<HardwareWatch>(event, log, std::move(changed), std::move(options));
    if (const auto done = watch->watch_cpus(event); !done)
        log.warn("CPUs that come and go are noticed by the periodic pass only: " + done.error().to_string());
    if (const auto done = watch->link_changes_.start(); !done)
        log.warn("interfaces that change are noticed by the periodic pass only: " + done.error().to_string());
    return watch;
}

Result<void> HardwareWatch::watch_cpus(sd_event* event) {
    // sd-device gives what udev passes on. Where none runs (containers, small systems) it would be silent for
    // ever.
    if (::access(udev_runs, F_OK) != 0) return cpu_changes_.start();
    sd_device_monitor* monitor = nullptr;
    int status = sd_device_monitor_new(&monitor);
    monitor_.reset(monitor);
    if (status >= 0) status = sd_device_monitor_filter_add_match_subsystem_devtype(monitor, "cpu", nullptr);
    if (status >= 0) status = sd_device_monitor_attach_event(monitor, event);
    if (status >= 0) status = sd_device_monitor_start(monitor, on_device, this);
    if (status < 0) return fail("cannot hear udev", {}, -status);
    return {};
}

int HardwareWatch::on_device(sd_device_monitor*, sd_device*, void* userdata) {
    static_cast<HardwareWatch*>(userdata)->changed_.cpus();
    return 0;
}

Result<int> HardwareWatch::open_uevents() {
    auto socket = options_.open_uevents();
    if (!socket) return std::unexpected(socket.error());
    uevents_ = std::move(*socket);
    return uevents_.get();
}

Result<void> HardwareWatch::read_uevents() {
    std::array<char, 8192> message; // NOLINT: written by recvfrom only; the kernel's bound is 2 KiB of keys
    bool is_cpu = false;
    int fault = 0;
    constexpr int at_once = 256; // then others have their turn; what is left wakes the loop again
    for (int i = 0; i < at_once; ++i) {
        sockaddr_nl sender{};
        socklen_t size = sizeof sender;
        const auto got = ::recvfrom(uevents_.get(), message.data(), message.size(), MSG_DONTWAIT,
                                    reinterpret_cast<sockaddr*>(&sender), &size);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == ENOBUFS) { // what was lost may have been about a CPU
            is_cpu = true;
            continue;
        }
        if (got < 0) {
            if (errno != EAGAIN && errno != EWOULDBLOCK) fault = errno;
            break;
        }
        // Only the kernel has port 0; programs may send to the group as well.
        if (size == sizeof sender && sender.nl_pid == 0)
            is_cpu = is_cpu || is_cpu_uevent({message.data(), static_cast<std::size_t>(got)});
    }
    if (is_cpu) changed_.cpus();
    if (fault != 0) return fail("cannot receive uevents", {}, fault);
    return {};
}

Result<int> HardwareWatch::open_links() {
    links_.reset();
    auto source = options_.open_links();
    if (!source) return std::unexpected(source.error());
    links_ = std::move(*source);
    return links_->fd();
}

Result<void> HardwareWatch::read_links() {
    // Only names are taken from the messages: the receiver reads the machine itself.
    const auto drained = links_->drain();
    if (!drained) return std::unexpected(drained.error());
    std::set<std::string> names;
    if (drained->lost) names.insert("");
    for (const auto& event : drained->events)
        names.insert(name_of(event));
    for (const auto& name : names)
        changed_.link(name);
    return {};
}

} // namespace affinityd::events
