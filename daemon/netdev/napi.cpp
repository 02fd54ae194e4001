// SPDX-License-Identifier: Apache-2.0
#include "netdev/napi.hpp"

#include "base/text.hpp"
#include "host/attributes.hpp"
#include "netdev/generic_socket.hpp"
#include "netdev/netdev_family.hpp"

#include <algorithm>
#include <map>

#include <netlink/attr.h>

namespace affinityd::netdev {

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
    auto socket = GenericSocket::open();
    if (!socket) return std::unexpected(socket.error());
    const auto number = socket->family(family::name);
    if (!number) return std::unexpected(number.error());
    if (!*number) return {}; // before Linux 6.8
    const auto list = [&](std::uint8_t command, int ifindex_attribute) {
        GenericSocket::Request request{**number, command, family::version};
        if (nics.size() == 1)
            request.fill = [&nics, ifindex_attribute](nl_msg& message) {
                nla_put_u32(&message, ifindex_attribute, nics.front().ifindex);
            };
        return socket->ask(request);
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
    constexpr std::size_t cut_length = 15; // TASK_COMM_LEN - 1
    if (!comm.starts_with(prefix)) return std::nullopt;
    const auto rest = comm.substr(prefix.size());
    const auto dash = rest.rfind('-');
    if (rest.empty() || dash == 0) return std::nullopt;
    const bool may_be_cut = comm.size() == cut_length;
    const auto id =
        dash == std::string_view::npos ? std::nullopt : parse_number<unsigned>(rest.substr(dash + 1));
    const bool is_whole_name = dash == std::string_view::npos || (!id && dash + 1 < rest.size());
    return NapiThreadName{std::string(is_whole_name ? rest : rest.substr(0, dash)), id, may_be_cut};
}

void attach_napi_threads(std::vector<Nic>& nics, std::span<const NamedThread> threads) {
    std::map<std::string, std::map<unsigned, int>, std::less<>> by_interface; // id -> tid
    for (const auto& thread : threads) {
        const auto name = parse_napi_thread(thread.comm);
        if (name && name->napi_id) by_interface[name->interface][*name->napi_id] = thread.tid;
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

} // namespace affinityd::netdev
