// SPDX-License-Identifier: Apache-2.0
#include "own_namespace.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netlink/netlink.h>
#include <netlink/route/link.h>
#include <netlink/route/link/veth.h>
#include <netlink/socket.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace affinityd::netdev {

namespace {

std::string fault(const char* what) { return std::string(what) + ": " + std::strerror(errno); }
std::string netlink_fault(const char* what, int code) { return std::string(what) + ": " + nl_geterror(code); }

struct Release {
    void operator()(nl_sock* socket) const { nl_socket_free(socket); }
    void operator()(rtnl_link* link) const { rtnl_link_put(link); }
};

std::unique_ptr<nl_sock, Release> route_socket() {
    std::unique_ptr<nl_sock, Release> socket(nl_socket_alloc());
    if (socket && nl_connect(socket.get(), NETLINK_ROUTE) < 0) socket.reset();
    return socket;
}

std::string enter() {
    const int flags = CLONE_NEWNET | CLONE_NEWNS | (::geteuid() == 0 ? 0 : CLONE_NEWUSER);
    if (::unshare(flags) != 0) return fault("unshare");
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return fault("make mounts private");
    if (::mount("sysfs", "/sys", "sysfs", 0, nullptr) != 0) return fault("mount sysfs");
    return {};
}

/// An ioctl on an interface by name.
template <class Set>
std::string interface_ioctl(const std::string& name, unsigned long request, const char* what, Set set) {
    ifreq argument{};
    name.copy(argument.ifr_name, IFNAMSIZ - 1);
    set(argument);
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return fault("socket");
    const int code = ::ioctl(fd, request, &argument);
    const auto text = code == 0 ? std::string() : fault(what);
    ::close(fd);
    return text;
}

} // namespace

std::string in_own_namespace(const std::function<std::string()>& body) {
    std::array<int, 2> ends{};
    if (::pipe(ends.data()) != 0) return fault("pipe");
    const pid_t child = ::fork();
    if (child < 0) return fault("fork");
    if (child == 0) {
        ::alarm(60); // never outlives a test that hangs
        auto text = enter();
        if (text.empty()) text = body();
        if (!text.empty() && ::write(ends[1], text.data(), text.size()) < 0) ::_exit(2);
        ::_exit(text.empty() ? 0 : 1);
    }
    ::close(ends[1]);
    std::string text;
    std::array<char, 4096> chunk{};
    for (ssize_t got = 0; (got = ::read(ends[0], chunk.data(), chunk.size())) > 0;)
        text.append(chunk.data(), static_cast<std::size_t>(got));
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (text.empty() && status != 0) return "the child ended with status " + std::to_string(status);
    return text;
}

std::string add_veth(const std::string& name, const std::string& peer, unsigned queues) {
    const auto socket = route_socket();
    const std::unique_ptr<rtnl_link, Release> link(rtnl_link_veth_alloc());
    if (!socket || !link) return "cannot allocate";
    rtnl_link* other = rtnl_link_veth_get_peer(link.get());
    rtnl_link_set_name(link.get(), name.c_str());
    rtnl_link_set_name(other, peer.c_str());
    for (auto* end : {link.get(), other}) {
        rtnl_link_set_num_rx_queues(end, queues);
        rtnl_link_set_num_tx_queues(end, queues);
    }
    const int code = rtnl_link_add(socket.get(), link.get(), NLM_F_CREATE | NLM_F_EXCL);
    rtnl_link_put(other);
    return code < 0 ? netlink_fault("add veth", code) : std::string();
}

std::string remove_link(const std::string& name) {
    const auto socket = route_socket();
    const std::unique_ptr<rtnl_link, Release> link(rtnl_link_alloc());
    if (!socket || !link) return "cannot allocate";
    rtnl_link_set_name(link.get(), name.c_str());
    const int code = rtnl_link_delete(socket.get(), link.get());
    return code < 0 ? netlink_fault("remove link", code) : std::string();
}

std::string set_up(const std::string& name, bool up) {
    return interface_ioctl(name, SIOCSIFFLAGS, "set flags", [&](ifreq& argument) {
        argument.ifr_flags = static_cast<short>(up ? IFF_UP : 0);
    });
}

std::string rename_link(const std::string& name, const std::string& to) {
    return interface_ioctl(name, SIOCSIFNAME, "rename",
                           [&](ifreq& argument) { to.copy(argument.ifr_newname, IFNAMSIZ - 1); });
}

std::string add_address(const std::string& name, const std::string& address) {
    return interface_ioctl(name, SIOCSIFADDR, "set address", [&](ifreq& argument) {
        sockaddr_in value{};
        value.sin_family = AF_INET;
        ::inet_pton(AF_INET, address.c_str(), &value.sin_addr);
        std::memcpy(&argument.ifr_addr, &value, sizeof value);
    });
}

std::string set_gro(const std::string& name) {
    ethtool_value value{};
    value.cmd = ETHTOOL_SGRO;
    value.data = 1;
    return interface_ioctl(name, SIOCETHTOOL, "set GRO",
                           [&](ifreq& argument) { argument.ifr_data = reinterpret_cast<char*>(&value); });
}

std::string set_channels(const std::string& name, unsigned rx, unsigned tx) {
    ethtool_channels value{};
    value.cmd = ETHTOOL_SCHANNELS;
    value.rx_count = rx;
    value.tx_count = tx;
    return interface_ioctl(name, SIOCETHTOOL, "set channels",
                           [&](ifreq& argument) { argument.ifr_data = reinterpret_cast<char*>(&value); });
}

} // namespace affinityd::netdev
