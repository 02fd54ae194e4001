// SPDX-License-Identifier: Apache-2.0
#include "netdev/channels.hpp"

#include "host/attributes.hpp"
#include "netdev/generic_socket.hpp"

#include <linux/ethtool_netlink.h>
#include <netlink/attr.h>

namespace affinityd::netdev {

namespace {

/// Without an index: of all interfaces. Kernels before 6.4 refuse a request without a header, also for all of
/// them. Source: ethnl_parse_header_dev_get() in net/ethtool/netlink.c.
void put_header(nl_msg& message, std::optional<unsigned> ifindex) {
    nlattr* header = nla_nest_start(&message, ETHTOOL_A_CHANNELS_HEADER);
    if (ifindex) nla_put_u32(&message, ETHTOOL_A_HEADER_DEV_INDEX, *ifindex);
    nla_nest_end_keep_empty(&message, header);
}

} // namespace

std::optional<std::pair<unsigned, Channels>> parse_channels(std::span<const std::byte> attributes) {
    const host::Attributes all(attributes);
    const auto ifindex = all.nested(ETHTOOL_A_CHANNELS_HEADER).u32(ETHTOOL_A_HEADER_DEV_INDEX);
    if (!ifindex) return std::nullopt;
    Channels channels;
    channels.rx = all.u32(ETHTOOL_A_CHANNELS_RX_COUNT);
    channels.tx = all.u32(ETHTOOL_A_CHANNELS_TX_COUNT);
    channels.combined = all.u32(ETHTOOL_A_CHANNELS_COMBINED_COUNT);
    channels.other = all.u32(ETHTOOL_A_CHANNELS_OTHER_COUNT);
    channels.max_rx = all.u32(ETHTOOL_A_CHANNELS_RX_MAX);
    channels.max_tx = all.u32(ETHTOOL_A_CHANNELS_TX_MAX);
    channels.max_combined = all.u32(ETHTOOL_A_CHANNELS_COMBINED_MAX);
    channels.max_other = all.u32(ETHTOOL_A_CHANNELS_OTHER_MAX);
    return std::pair(*ifindex, channels);
}

Result<void> read_channels(std::span<Nic> nics) {
    if (nics.empty()) return {};
    auto socket = GenericSocket::open();
    if (!socket) return std::unexpected(socket.error());
    const auto number = socket->family(ETHTOOL_GENL_NAME);
    if (!number) return std::unexpected(number.error());
    if (!*number) return {}; // before Linux 5.6
    const auto only = nics.size() == 1 ? std::optional(nics.front().ifindex) : std::nullopt;
    GenericSocket::Request request{**number, ETHTOOL_MSG_CHANNELS_GET, ETHTOOL_GENL_VERSION};
    request.dump = !only;
    request.fill = [only](nl_msg& message) { put_header(message, only); };
    int code = 0; // answers before a refusal count
    const auto answers = socket->ask(request, &code);
    if (!answers) return std::unexpected(answers.error());
    for (const auto& answer : *answers)
        if (const auto parsed = parse_channels(answer))
            if (auto* nic = find_nic(nics, parsed->first)) nic->channels = parsed->second;
    return {};
}

} // namespace affinityd::netdev
