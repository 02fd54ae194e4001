// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/busy.hpp"

#include "affinity-ttcp/engine/activity.hpp"
#include "affinity-ttcp/engine/endpoint.hpp"
#include "host/root.hpp"
#include "netdev/addresses.hpp"
#include "netdev/reader.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

namespace affinityd::ttcp {

namespace {

/// Source address of datagrams to the peer; none is sent. "" without a route.
std::string local_address_towards(const Address& peer) {
    const auto infos = look_up(peer, SOCK_DGRAM);
    if (!infos) return {};
    for (const auto* at = infos->get(); at != nullptr; at = at->ai_next) {
        const host::Fd socket(::socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        if (socket && ::connect(socket.get(), at->ai_addr, at->ai_addrlen) == 0)
            return address_of(socket.get());
    }
    return {};
}

std::string nic_towards(const host::Root& root, const Address& peer) {
    const auto address = local_address_towards(peer);
    auto nics = netdev::read_nics(root);
    if (address.empty() || !nics) return {};
    for (const auto& nic : *nics)
        if (nic.name != "lo" && std::ranges::find(nic.addresses, address) != nic.addresses.end())
            return nic.name;
    return {};
}

std::optional<double> bytes_of(const host::Root& root, const std::string& nic, const char* direction) {
    const auto count = root.sys().number(fmt::format("class/net/{}/statistics/{}_bytes", nic, direction));
    return count ? std::optional(static_cast<double>(*count)) : std::nullopt;
}

} // namespace

Busyness look_around(const host::Root& root, const std::optional<Address>& peer, double seconds) {
    Busyness busyness;
    if (peer) busyness.nic = nic_towards(root, *peer);
    const auto first = read_activity(root);
    const auto received = bytes_of(root, busyness.nic, "rx");
    const auto sent = bytes_of(root, busyness.nic, "tx");
    ::usleep(static_cast<useconds_t>(seconds * 1e6));
    const auto last = read_activity(root);
    busyness.cpus = busy_between(first, last);
    const auto speed =
        root.sys().number("class/net/" + busyness.nic + "/speed"); // Mbit/s; -1 where there is none
    const auto now_received = bytes_of(root, busyness.nic, "rx");
    const auto now_sent = bytes_of(root, busyness.nic, "tx");
    if (!busyness.nic.empty() && received && sent && now_received && now_sent && speed && *speed > 0 &&
        last.at > first.at) {
        const double most = std::max({0.0, *now_received - *received, *now_sent - *sent});
        busyness.link = most * 8 / (last.at - first.at) / (static_cast<double>(*speed) * 1e6);
    }
    return busyness;
}

std::string why_busy(const Busyness& busyness, double bound) {
    if (busyness.cpus && *busyness.cpus > bound)
        return fmt::format("the machine is busy: {:.0f} % of its CPU time, the bound is {:.0f} %",
                           100 * *busyness.cpus, 100 * bound);
    if (busyness.link && *busyness.link > bound)
        return fmt::format("{} is busy: {:.0f} % of its speed, the bound is {:.0f} %", busyness.nic,
                           100 * *busyness.link, 100 * bound);
    return {};
}

} // namespace affinityd::ttcp
