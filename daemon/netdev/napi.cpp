// SPDX-License-Identifier: Apache-2.0
#include "netdev/napi.hpp"

#include "base/text.hpp"
#include "host/netlink.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include <linux/ethtool_netlink.h>
#include <netlink/attr.h>
#include <netlink/errno.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/msg.h>
#include <netlink/netlink.h>

namespace affinityd::netdev {

namespace {

namespace family {

/// Numbers of the generic netlink family "netdev", which the kernel headers of Debian 12 do not have yet.
/// Source: include/uapi/linux/netdev.h of Linux 6.8, which is ABI.
constexpr const char* name = "netdev";
constexpr std::uint8_t version = 1;

constexpr std::uint8_t cmd_queue_get = 10;
constexpr std::uint8_t cmd_napi_get = 11;

constexpr int napi_ifindex = 1;
constexpr int napi_id = 2;
constexpr int napi_irq = 3;
constexpr int napi_pid = 4;

constexpr int queue_id = 1;
constexpr int queue_ifindex = 2;
constexpr int queue_type = 3;
constexpr int queue_napi_id = 4;
constexpr unsigned queue_type_tx = 1;

} // namespace family

/// A request to a generic netlink family.
struct Request {
    const char* family = nullptr;
    std::uint8_t command = 0;
    std::uint8_t version = 0;
    bool dump = true;                       ///< all there are; otherwise the one that `fill` names
    std::function<void(nl_msg&)> fill = {}; ///< adds attributes
};
using Answer = std::vector<std::byte>; ///< attributes after the generic header

constexpr std::size_t max_answers = 1U << 20; ///< more than any machine has queues

Result<host::NetlinkMessage> make_message(const Request& request, int family) {
    auto message = host::make_request(family, 0);
    if (!message) return message;
    if (genlmsg_put(message->get(), NL_AUTO_PORT, NL_AUTO_SEQ, family, 0, request.dump ? NLM_F_DUMP : 0,
                    request.command, request.version) == nullptr)
        return fail("cannot allocate a netlink message");
    if (request.fill) request.fill(**message);
    return message;
}

/// The answers; none if this kernel has no such family, or refuses: the families asked here add to what sysfs
/// says, and no driver has to support them. If a list ends early, those before its end. An Error: the
/// socket does not work, or the list changed all the time.
Result<std::vector<Answer>> ask(const Request& request) {
    std::vector<Answer> answers;
    auto socket = host::open_netlink(NETLINK_GENERIC);
    if (!socket) return std::unexpected(socket.error());
    const int family = genl_ctrl_resolve(socket->get(), request.family);
    if (family == -NLE_OBJ_NOTFOUND) return answers;
    if (family < 0)
        return fail(std::string("cannot look up a generic netlink family: ") + nl_geterror(family),
                    request.family);
    const auto message = make_message(request, family);
    if (!message) return std::unexpected(message.error());
    const auto take = [&](const nlmsghdr& head) {
        auto* whole = const_cast<nlmsghdr*>(&head); // libnl's readers take no const
        if (!genlmsg_valid_hdr(whole, 0) || answers.size() >= max_answers) return;
        auto* generic = static_cast<genlmsghdr*>(nlmsg_data(whole));
        const auto* first = reinterpret_cast<const std::byte*>(genlmsg_attrdata(generic, 0));
        answers.emplace_back(first, first + genlmsg_attrlen(generic, 0));
    };
    const auto done = host::ask(**socket, **message, {[&] { answers.clear(); }, take});
    if (!done) return std::unexpected(done.error());
    if (!*done) answers.clear();
    return answers;
}

} // namespace

std::optional<NapiFact> parse_napi(std::span<const std::byte> attributes) {
    const host::Attributes all(attributes);
    const auto ifindex = all.u32(family::napi_ifindex);
    const auto id = all.u32(family::napi_id);
    if (!ifindex || !id) return std::nullopt;
    NapiFact fact{*ifindex, *id, all.u32(family::napi_irq), std::nullopt};
    if (const auto pid = all.u32(family::napi_pid); pid && *pid > 0 && *pid <= 0x7fffffff)
        fact.thread = static_cast<int>(*pid);
    return fact;
}

std::optional<QueueFact> parse_queue(std::span<const std::byte> attributes) {
    const host::Attributes all(attributes);
    const auto ifindex = all.u32(family::queue_ifindex);
    const auto index = all.u32(family::queue_id);
    const auto type = all.u32(family::queue_type);
    if (!ifindex || !index || !type || *type > family::queue_type_tx) return std::nullopt;
    return QueueFact{*ifindex, *index, *type == family::queue_type_tx ? Direction::tx : Direction::rx,
                     all.u32(family::queue_napi_id)};
}

namespace {

/// By interface and id.
using NapiFacts = std::map<std::pair<unsigned, unsigned>, const NapiFact*>;

/// Drivers that do not link their queues (veth) still have threads, which the kernel tells: one for each
/// receive queue, ids in the order in which they were added.
void link_threads_in_order(Nic& nic, const NapiFacts& napis) {
    if (std::ranges::any_of(nic.queues, [](const Queue& queue) { return queue.napi_id.has_value(); })) return;
    std::vector<int> threads;
    for (auto at = napis.lower_bound({nic.ifindex, 0}); at != napis.end() && at->first.first == nic.ifindex;
         ++at)
        if (at->second->thread) threads.push_back(*at->second->thread);
    const auto receiving = std::ranges::count(nic.queues, Direction::rx, &Queue::direction);
    if (threads.size() != static_cast<std::size_t>(receiving)) return;
    auto next = threads.begin();
    for (auto& queue : nic.queues)
        if (queue.direction == Direction::rx) queue.napi_thread = *next++;
}

Queue* find_queue(Nic& nic, Direction direction, unsigned index) {
    const auto queue = std::ranges::find_if(nic.queues, [&](const Queue& candidate) {
        return candidate.direction == direction && candidate.index == index;
    });
    return queue == nic.queues.end() ? nullptr : &*queue;
}

} // namespace

void link_queues(std::span<Nic> nics, std::span<const QueueFact> queues, std::span<const NapiFact> napis) {
    NapiFacts known;
    for (const auto& napi : napis)
        known.emplace(std::pair(napi.ifindex, napi.id), &napi);
    for (const auto& fact : queues) {
        auto* nic = fact.napi_id ? find_nic(nics, fact.ifindex) : nullptr;
        auto* queue = nic != nullptr ? find_queue(*nic, fact.direction, fact.index) : nullptr;
        if (queue == nullptr) continue; // made since sysfs was read: its event leads to another reading
        queue->napi_id = fact.napi_id;
        const auto napi = known.find({fact.ifindex, *fact.napi_id});
        if (napi == known.end()) continue;
        queue->irq = napi->second->irq;
        queue->napi_thread = napi->second->thread;
    }
    for (auto& nic : nics)
        link_threads_in_order(nic, known);
}

Result<void> read_napi(std::span<Nic> nics) {
    if (nics.empty()) return {};
    const auto list = [&](std::uint8_t command, int ifindex_attribute) {
        Request request{family::name, command, family::version}; // Linux 6.8 on
        if (nics.size() == 1)
            request.fill = [&nics, ifindex_attribute](nl_msg& message) {
                nla_put_u32(&message, ifindex_attribute, nics.front().ifindex);
            };
        return ask(request);
    };
    const auto queue_answers = list(family::cmd_queue_get, family::queue_ifindex);
    if (!queue_answers) return std::unexpected(queue_answers.error());
    const auto napi_answers = list(family::cmd_napi_get, family::napi_ifindex);
    if (!napi_answers) return std::unexpected(napi_answers.error());
    std::vector<QueueFact> queues;
    std::vector<NapiFact> napis;
    for (const auto& answer : *queue_answers)
        if (auto fact = parse_queue(answer)) queues.push_back(*fact);
    for (const auto& answer : *napi_answers)
        if (auto fact = parse_napi(answer)) napis.push_back(*fact);
    link_queues(nics, queues, napis);
    return {};
}

std::optional<NapiThreadName> parse_napi_thread(std::string_view comm) {
    constexpr std::string_view prefix = "napi/";
    if (!comm.starts_with(prefix)) return std::nullopt;
    const auto rest = comm.substr(prefix.size());
    const auto dash = rest.rfind('-');
    if (dash == std::string_view::npos || dash == 0) return std::nullopt;
    const auto id = parse_number<unsigned>(rest.substr(dash + 1));
    return id ? std::optional(NapiThreadName{std::string(rest.substr(0, dash)), *id}) : std::nullopt;
}

void attach_napi_threads(std::vector<Nic>& nics, std::span<const NamedThread> threads) {
    std::map<std::string, std::map<unsigned, int>, std::less<>> by_interface; // id -> tid
    for (const auto& thread : threads) {
        if (const auto name = parse_napi_thread(thread.comm))
            by_interface[name->interface][name->napi_id] = thread.tid;
    }
    for (auto& nic : nics) {
        const auto found = by_interface.find(nic.name);
        if (!nic.threaded_napi || found == by_interface.end()) continue;
        const auto& tids = found->second;
        const auto receiving =
            static_cast<std::size_t>(std::ranges::count(nic.queues, Direction::rx, &Queue::direction));
        auto in_order = tids.begin();
        for (auto& queue : nic.queues) {
            if (queue.napi_id) {
                const auto exact = tids.find(*queue.napi_id);
                if (!queue.napi_thread && exact != tids.end()) queue.napi_thread = exact->second;
            } else if (queue.direction == Direction::rx && tids.size() == receiving) {
                queue.napi_id = in_order->first;
                if (!queue.napi_thread) queue.napi_thread = in_order->second;
                ++in_order;
            }
        }
    }
}

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
    const auto only = nics.size() == 1 ? std::optional(nics.front().ifindex) : std::nullopt;
    const auto answers = ask({.family = ETHTOOL_GENL_NAME, // Linux 5.6 on
                              .command = ETHTOOL_MSG_CHANNELS_GET,
                              .version = ETHTOOL_GENL_VERSION,
                              .dump = !only,
                              .fill = [only](nl_msg& message) { put_header(message, only); }});
    if (!answers) return std::unexpected(answers.error());
    for (const auto& answer : *answers)
        if (const auto parsed = parse_channels(answer))
            if (auto* nic = find_nic(nics, parsed->first)) nic->channels = parsed->second;
    return {};
}

} // namespace affinityd::netdev
