// SPDX-License-Identifier: Apache-2.0
#include "events/hardware_watch.hpp"

#include <array>
#include <system_error>

#include <linux/rtnetlink.h>
#include <netlink/netlink.h>
#include <netlink/socket.h>
#include <sys/socket.h>
#include <systemd/sd-device.h>

namespace affinityd::events {

namespace {

std::string reason(int status) { return std::generic_category().message(-status); }

} // namespace

std::unique_ptr<HardwareWatch> HardwareWatch::start(sd_event* event, app::Log& log, Changed changed) {
    auto watch = std::make_unique<HardwareWatch>(std::move(changed));
    if (const int status = watch->watch_cpus(event); status < 0)
        log.warn("CPUs that come and go are noticed by the periodic pass only: " + reason(status));
    if (const int status = watch->watch_links(event); status < 0)
        log.warn("interfaces that change are noticed by the periodic pass only: " + reason(status));
    return watch;
}

void HardwareWatch::SocketFree::operator()(nl_sock* socket) const { nl_socket_free(socket); }

HardwareWatch::~HardwareWatch() { sd_device_monitor_unref(monitor_); }

int HardwareWatch::watch_cpus(sd_event* event) {
    // Where no udev passes the kernel's uevents on (containers), the periodic pass notices the change.
    int status = sd_device_monitor_new(&monitor_);
    if (status >= 0) status = sd_device_monitor_filter_add_match_subsystem_devtype(monitor_, "cpu", nullptr);
    if (status >= 0) status = sd_device_monitor_attach_event(monitor_, event);
    if (status >= 0) status = sd_device_monitor_start(monitor_, on_device, this);
    return status;
}

int HardwareWatch::watch_links(sd_event* event) {
    nl_sock* socket = nl_socket_alloc();
    if (socket == nullptr) return -ENOMEM;
    int status = nl_connect(socket, NETLINK_ROUTE);
    for (const int group : {RTNLGRP_LINK, RTNLGRP_IPV4_IFADDR, RTNLGRP_IPV6_IFADDR})
        if (status >= 0) status = nl_socket_add_membership(socket, group);
    if (status < 0) {
        nl_socket_free(socket);
        return -EPROTO;
    }
    socket_.reset(socket);
    sd_event_source* source = nullptr;
    status = sd_event_add_io(event, &source, nl_socket_get_fd(socket), EPOLLIN, on_link, this);
    if (status >= 0) link_source_.reset(source);
    return status;
}

int HardwareWatch::on_device(sd_device_monitor*, sd_device*, void* userdata) {
    static_cast<HardwareWatch*>(userdata)->changed_();
    return 0;
}

int HardwareWatch::on_link(sd_event_source*, int fd, std::uint32_t, void* userdata) {
    // What changed is not read out of the messages: the pass looks at the machine itself, so that a lost message costs nothing.
    std::array<char, 16384> drain; // NOLINT: written by recv only
    while (::recv(fd, drain.data(), drain.size(), MSG_DONTWAIT | MSG_TRUNC) > 0) {
    }
    static_cast<HardwareWatch*>(userdata)->changed_();
    return 0;
}

} // namespace affinityd::events
