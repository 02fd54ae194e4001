// SPDX-License-Identifier: Apache-2.0
#include "netdev/channels.hpp"

#include "host/attributes.hpp"
#include "netdev/generic_socket.hpp"

#include <cerrno>
#include <memory>
#include <utility>

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

void take_channels(const ChannelAnswers& answers, std::span<Nic> nics) {
    for (const auto& [ifindex, channels] : answers.channels)
        if (auto* nic = find_nic(nics, ifindex)) nic->channels = channels;
}

/// No function: the kernel has no ethtool netlink.
Result<AskChannels> channels_of_kernel() {
    auto opened = GenericSocket::open();
    if (!opened) return std::unexpected(opened.error());
    const auto number = opened->family(ETHTOOL_GENL_NAME);
    if (!number) return std::unexpected(number.error());
    if (!*number) return AskChannels();
    return [socket = std::make_shared<GenericSocket>(std::move(*opened)),
            family = **number](std::optional<unsigned> ifindex) -> Result<ChannelAnswers> {
        GenericSocket::Request request{family, ETHTOOL_MSG_CHANNELS_GET, ETHTOOL_GENL_VERSION};
        request.dump = !ifindex;
        request.fill = [ifindex](nl_msg& message) { put_header(message, ifindex); };
        ChannelAnswers answers;
        const auto got = socket->ask(request, &answers.code);
        if (!got) return std::unexpected(got.error());
        for (const auto& answer : *got)
            if (auto parsed = parse_channels(answer)) answers.channels.push_back(*std::move(parsed));
        return answers;
    };
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

Result<bool> list_channels(std::span<Nic> nics, const AskChannels& ask) {
    const auto list = ask(std::nullopt);
    if (!list) return std::unexpected(list.error());
    take_channels(*list, nics);
    return list->code != 0 && list->code != EOPNOTSUPP;
}

Result<void> read_channels(std::span<Nic> nics, const AskChannels& ask) {
    Result<bool> is_cut = true;
    if (nics.size() != 1) is_cut = list_channels(nics, ask);
    if (!is_cut) return std::unexpected(is_cut.error());
    for (auto& nic : nics) {
        if (!*is_cut || nic.channels || nic.ifindex == 0) continue;
        const auto answer = ask(nic.ifindex);
        if (!answer) return std::unexpected(answer.error());
        take_channels(*answer, {&nic, 1});
        if (answer->code != EOPNOTSUPP) nic.channels_fault = answer->code;
    }
    return {};
}

Result<bool> list_channels(std::span<Nic> nics) {
    const auto ask = channels_of_kernel();
    if (!ask) return std::unexpected(ask.error());
    return *ask ? list_channels(nics, *ask) : false;
}

Result<void> read_channels(std::span<Nic> nics) {
    if (nics.empty()) return {};
    const auto ask = channels_of_kernel();
    if (!ask) return std::unexpected(ask.error());
    return *ask ? read_channels(nics, *ask) : Result<void>();
}

int set_channels(unsigned ifindex, const ChannelChange& change) {
    auto socket = GenericSocket::open();
    if (!socket) return EIO;
    const auto number = socket->family(ETHTOOL_GENL_NAME);
    if (!number) return EIO;
    if (!*number) return EOPNOTSUPP; // before Linux 5.6
    GenericSocket::Request request{**number, ETHTOOL_MSG_CHANNELS_SET, ETHTOOL_GENL_VERSION};
    request.dump = false;
    request.fill = [&](nl_msg& message) {
        put_header(message, ifindex);
        if (change.rx) nla_put_u32(&message, ETHTOOL_A_CHANNELS_RX_COUNT, *change.rx);
        if (change.tx) nla_put_u32(&message, ETHTOOL_A_CHANNELS_TX_COUNT, *change.tx);
        if (change.combined) nla_put_u32(&message, ETHTOOL_A_CHANNELS_COMBINED_COUNT, *change.combined);
    };
    return socket->tell(request).value_or(EIO);
}

} // namespace affinityd::netdev
