// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/testbed/network_space.hpp"

#include "base/text.hpp"
#include "host/fd.hpp"
#include "netdev/napi.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/mount.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netlink/netlink.h>
#include <netlink/route/link.h>
#include <netlink/route/link/veth.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

namespace affinityd::ttcp {

namespace {

Result<host::Fd> open_own(const host::Root& root) {
    return root.proc().open_file("thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

/// By fsopen(2) and fsmount(2): a mount that no tree shows.
Result<host::Dir> mount_sysfs() {
    const host::Fd context(static_cast<int>(::syscall(SYS_fsopen, "sysfs", FSOPEN_CLOEXEC)));
    if (!context) return fail("cannot open the namespace's sysfs", {}, errno);
    if (::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
        return fail("cannot set up the namespace's sysfs", {}, errno);
    const host::Fd mount(
        static_cast<int>(::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC,
                                   MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)));
    if (!mount) return fail("cannot mount the namespace's sysfs", {}, errno);
    return host::Dir::open(mount.get(), ".", false);
}

struct Free {
    void operator()(nl_sock* socket) const { nl_socket_free(socket); }
    void operator()(rtnl_link* link) const { rtnl_link_put(link); }
};
using Socket = std::unique_ptr<nl_sock, Free>;
using Link = std::unique_ptr<rtnl_link, Free>;

Error netlink_error(const char* what, const std::string& subject, int code) {
    return Error{std::string(what) + ": " + nl_geterror(code), subject, code == -NLE_PERM ? EPERM : 0};
}

Result<Socket> open_socket() {
    Socket socket(nl_socket_alloc());
    if (!socket) return fail("no memory for a netlink socket", {}, ENOMEM);
    if (const int code = nl_connect(socket.get(), NETLINK_ROUTE); code < 0)
        return std::unexpected(netlink_error("cannot open a netlink socket", {}, code));
    return socket;
}

Result<ifreq> request_for(const std::string& name) {
    ifreq request{};
    if (name.empty() || name.size() >= sizeof request.ifr_name)
        return fail("no name for an interface", name, EINVAL);
    std::memcpy(request.ifr_name, name.data(), name.size());
    return request;
}

Result<void> control(const std::string& name, unsigned long what, ifreq& request) {
    const host::Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!socket) return fail("cannot open a socket", name, errno);
    if (::ioctl(socket.get(), what, &request) != 0)
        return fail("cannot configure the interface", name, errno);
    return {};
}

Result<void> set_address(const std::string& name, unsigned long what, in_addr address) {
    auto request = request_for(name);
    if (!request) return std::unexpected(request.error());
    sockaddr_in value{};
    value.sin_family = AF_INET;
    value.sin_addr = address;
    std::memcpy(&request->ifr_addr, &value, sizeof value);
    return control(name, what, *request);
}

Result<std::uint32_t> feature(const std::string& name, std::uint32_t command, std::uint32_t on = 0) {
    auto request = request_for(name);
    if (!request) return std::unexpected(request.error());
    ethtool_value value{command, on};
    request->ifr_data = reinterpret_cast<char*>(&value);
    if (auto done = control(name, SIOCETHTOOL, *request); !done) return std::unexpected(done.error());
    return value.data;
}

/// Kernel threads called "napi/NAME-ID".
std::vector<int> napi_threads(const host::Root& root, const std::string& nic) {
    std::vector<int> tids;
    for (const auto& entry : root.proc().list(".").value_or(std::vector<std::string>{})) {
        const auto tid = parse_number<int>(entry);
        if (!tid) continue;
        const auto name = netdev::parse_napi_thread(root.proc().text(entry + "/comm").value_or(""));
        if (name && name->interface == nic) tids.push_back(*tid);
    }
    return tids;
}

} // namespace

Result<NetworkSpace> NetworkSpace::make(const host::Root& root) {
    auto outside = open_own(root);
    if (!outside) return std::unexpected(outside.error());
    if (::unshare(CLONE_NEWNET) != 0)
        return fail("cannot make a network namespace (root is needed)", {}, errno);
    auto inside = open_own(root);
    auto sys = mount_sysfs();
    if (::setns(outside->get(), CLONE_NEWNET) != 0)
        ::abort(); // going on in the wrong network could change foreign interfaces
    if (!inside) return std::unexpected(inside.error());
    if (!sys) return std::unexpected(sys.error());
    return NetworkSpace(std::move(*inside), std::move(*outside), std::move(*sys));
}

Result<void> NetworkSpace::within(const std::function<Result<void>()>& work) const {
    if (::setns(space_.get(), CLONE_NEWNET) != 0)
        return fail("cannot enter the network namespace", {}, errno);
    auto done = work();
    if (::setns(outside_.get(), CLONE_NEWNET) != 0) ::abort();
    return done;
}

Result<void> make_veth(const std::string& name, const std::string& peer, int peer_space) {
    const auto socket = open_socket();
    if (!socket) return std::unexpected(socket.error());
    const Link link(rtnl_link_veth_alloc());
    const Link other(link ? rtnl_link_veth_get_peer(link.get()) : nullptr);
    if (!other) return fail("no memory for a veth pair", name, ENOMEM);
    rtnl_link_set_name(link.get(), name.c_str());
    rtnl_link_set_name(other.get(), peer.c_str());
    rtnl_link_set_ns_fd(other.get(), peer_space);
    const int code = rtnl_link_add(socket->get(), link.get(), NLM_F_CREATE | NLM_F_EXCL);
    if (code < 0) return std::unexpected(netlink_error("cannot make a veth pair", name, code));
    return {};
}

Result<void> move_link(const std::string& name, int space) {
    const auto socket = open_socket();
    if (!socket) return std::unexpected(socket.error());
    rtnl_link* found = nullptr;
    int code = rtnl_link_get_kernel(socket->get(), 0, name.c_str(), &found);
    if (code < 0) return std::unexpected(netlink_error("there is no such interface", name, code));
    const Link link(found);
    const Link change(rtnl_link_alloc());
    if (!change) return fail("no memory for a netlink message", name, ENOMEM);
    rtnl_link_set_ns_fd(change.get(), space);
    code = rtnl_link_change(socket->get(), link.get(), change.get(), 0);
    if (code < 0) return std::unexpected(netlink_error("cannot move the interface", name, code));
    return {};
}

Result<void> bring_up(const std::string& name, const std::string& address, unsigned prefix) {
    in_addr value{};
    if (prefix > 32 || ::inet_pton(AF_INET, address.c_str(), &value) != 1)
        return fail("not an IPv4 address", address, EINVAL);
    if (auto done = set_address(name, SIOCSIFADDR, value); !done) return done;
    value.s_addr = prefix == 0 ? 0 : htonl(~0U << (32 - prefix));
    if (auto done = set_address(name, SIOCSIFNETMASK, value); !done) return done;
    return set_up(name, true);
}

Result<void> set_up(const std::string& name, bool up) {
    auto request = request_for(name);
    if (!request) return std::unexpected(request.error());
    if (auto done = control(name, SIOCGIFFLAGS, *request); !done) return done;
    const int flags = request->ifr_flags & ~IFF_UP;
    request->ifr_flags = static_cast<short>(up ? flags | IFF_UP : flags);
    return control(name, SIOCSIFFLAGS, *request);
}

Result<bool> has_offload(const std::string& name, Offload offload) {
    const auto value = feature(name, offload == Offload::receive ? ETHTOOL_GGRO : ETHTOOL_GTSO);
    if (!value) return std::unexpected(value.error());
    return *value != 0;
}

Result<void> set_offload(const std::string& name, Offload offload, bool on) {
    const auto done = feature(name, offload == Offload::receive ? ETHTOOL_SGRO : ETHTOOL_STSO, on ? 1 : 0);
    if (!done) return std::unexpected(done.error());
    return {};
}

Result<void> receive_by_napi(const std::string& name) {
    const auto done = set_offload(name, Offload::receive, true);
    return done ? set_offload(name, Offload::segmentation, false) : done;
}

Result<std::vector<int>> start_napi_threads(const host::Root& root, const NetworkSpace& space,
                                            const std::string& name) {
    const auto before = napi_threads(root, name);
    if (const int code = space.sys().write("class/net/" + name + "/threaded", "1"); code != 0)
        return fail("no threaded NAPI (Linux 5.12 or later is needed)", name, code);
    std::vector<int> fresh;
    for (const int tid : napi_threads(root, name))
        if (std::ranges::find(before, tid) == before.end()) fresh.push_back(tid);
    if (fresh.empty())
        return fail("its NAPI thread cannot be seen from here: is this a container?", name, ESRCH);
    return fresh;
}

} // namespace affinityd::ttcp
