// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/testbed/link_setup.hpp"

#include "host/fd.hpp"

#include <cerrno>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netlink/netlink.h>
#include <netlink/route/link.h>
#include <netlink/route/link/veth.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace affinityd::ttcp {

namespace {

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

Result<void> set_up(const std::string& name, bool up) {
    auto request = request_for(name);
    if (!request) return std::unexpected(request.error());
    if (auto done = control(name, SIOCGIFFLAGS, *request); !done) return done;
    if (up)
        request->ifr_flags = static_cast<short>(request->ifr_flags | IFF_UP);
    else
        request->ifr_flags = static_cast<short>(request->ifr_flags & ~IFF_UP);
    return control(name, SIOCSIFFLAGS, *request);
}

Result<std::uint32_t> feature(const std::string& name, std::uint32_t command, std::uint32_t on = 0) {
    auto request = request_for(name);
    if (!request) return std::unexpected(request.error());
    ethtool_value value{command, on};
    request->ifr_data = reinterpret_cast<char*>(&value);
    if (auto done = control(name, SIOCETHTOOL, *request); !done) return std::unexpected(done.error());
    return value.data;
}

Result<void> set_feature(const std::string& name, std::uint32_t command, bool on) {
    const auto done = feature(name, command, on ? 1 : 0);
    if (!done) return std::unexpected(done.error());
    return {};
}

Result<bool> has_feature(const std::string& name, std::uint32_t command) {
    const auto value = feature(name, command);
    if (!value) return std::unexpected(value.error());
    return *value != 0;
}

} // namespace

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

Result<void> put_up(const std::string& name) { return set_up(name, true); }
Result<void> take_down(const std::string& name) { return set_up(name, false); }

Result<bool> has_gro(const std::string& name) { return has_feature(name, ETHTOOL_GGRO); }
Result<void> set_gro(const std::string& name, bool on) { return set_feature(name, ETHTOOL_SGRO, on); }
Result<bool> has_tso(const std::string& name) { return has_feature(name, ETHTOOL_GTSO); }
Result<void> set_tso(const std::string& name, bool on) { return set_feature(name, ETHTOOL_STSO, on); }

} // namespace affinityd::ttcp
