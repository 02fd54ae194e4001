// SPDX-License-Identifier: Apache-2.0
#include "netdev/addresses.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include <arpa/inet.h>
#include <netlink/cache.h>
#include <netlink/netlink.h>
#include <netlink/route/addr.h>
#include <netlink/socket.h>

namespace affinityd::netdev {

namespace {

struct Release {
    void operator()(nl_sock* socket) const { nl_socket_free(socket); }
    void operator()(nl_cache* cache) const { nl_cache_free(cache); }
};

std::string to_text(const nl_addr* address) {
    std::array<char, INET6_ADDRSTRLEN> text{};
    const int family = nl_addr_get_family(address);
    const unsigned length = nl_addr_get_len(address);
    const bool is_ip = (family == AF_INET && length == 4) || (family == AF_INET6 && length == 16);
    if (!is_ip || inet_ntop(family, nl_addr_get_binary_addr(address), text.data(), text.size()) == nullptr)
        return {};
    return text.data();
}

} // namespace

Result<void> read_addresses(std::vector<Nic>& nics) {
    const std::unique_ptr<nl_sock, Release> socket(nl_socket_alloc());
    if (!socket) return fail("cannot allocate a netlink socket");
    if (const int code = nl_connect(socket.get(), NETLINK_ROUTE); code < 0)
        return fail(std::string("cannot connect to rtnetlink: ") + nl_geterror(code));
    nl_cache* raw = nullptr;
    if (const int code = rtnl_addr_alloc_cache(socket.get(), &raw); code < 0)
        return fail(std::string("cannot list addresses: ") + nl_geterror(code));
    const std::unique_ptr<nl_cache, Release> cache(raw);
    for (nl_object* object = nl_cache_get_first(cache.get()); object != nullptr;
         object = nl_cache_get_next(object)) {
        auto* entry = reinterpret_cast<rtnl_addr*>(object); // NOLINT: libnl's objects are C "derived classes"
        const nl_addr* local = rtnl_addr_get_local(entry);
        const auto index = static_cast<unsigned>(rtnl_addr_get_ifindex(entry));
        const auto nic = std::ranges::find(nics, index, &Nic::ifindex);
        if (local == nullptr || nic == nics.end()) continue;
        if (auto text = to_text(local); !text.empty()) nic->addresses.push_back(std::move(text));
    }
    for (auto& nic : nics)
        std::ranges::sort(nic.addresses);
    return {};
}

} // namespace affinityd::netdev
