// SPDX-License-Identifier: Apache-2.0
#include "netdev/napi.hpp"

#include "base/text.hpp"
#include "netdev/netdev_family.hpp"

#include <algorithm>
#include <cstring>

#include <netlink/attr.h>

namespace affinityd::netdev {

namespace {

/// The 32-bit value of an attribute, if the attributes are well formed and hold it.
class Attributes {
  public:
    explicit Attributes(std::span<const std::byte> bytes) : bytes_(bytes) {}

    [[nodiscard]] std::optional<unsigned> u32(int type) const {
        std::size_t at = 0;
        while (bytes_.size() - at >= NLA_HDRLEN) {
            nlattr head{};
            std::memcpy(&head, bytes_.data() + at, sizeof head);
            if (head.nla_len < NLA_HDRLEN || head.nla_len > bytes_.size() - at) return std::nullopt;
            if ((head.nla_type & NLA_TYPE_MASK) == type && head.nla_len >= NLA_HDRLEN + sizeof(unsigned)) {
                unsigned value = 0;
                std::memcpy(&value, bytes_.data() + at + NLA_HDRLEN, sizeof value);
                return value;
            }
            at += std::min<std::size_t>(static_cast<std::size_t>(NLA_ALIGN(head.nla_len)), bytes_.size() - at);
        }
        return std::nullopt;
    }

  private:
    std::span<const std::byte> bytes_;
};

} // namespace

std::optional<NapiFact> parse_napi(std::span<const std::byte> attributes) {
    const Attributes all(attributes);
    const auto ifindex = all.u32(family::napi_ifindex);
    const auto id = all.u32(family::napi_id);
    if (!ifindex || !id) return std::nullopt;
    NapiFact fact{*ifindex, *id, all.u32(family::napi_irq), std::nullopt};
    if (const auto pid = all.u32(family::napi_pid); pid && *pid > 0 && *pid <= 0x7fffffff) fact.thread = static_cast<int>(*pid);
    return fact;
}

std::optional<QueueFact> parse_queue(std::span<const std::byte> attributes) {
    const Attributes all(attributes);
    const auto ifindex = all.u32(family::queue_ifindex);
    const auto index = all.u32(family::queue_id);
    const auto type = all.u32(family::queue_type);
    if (!ifindex || !index || !type || *type > family::queue_type_tx) return std::nullopt;
    return QueueFact{*ifindex, *index, *type == family::queue_type_tx ? Direction::tx : Direction::rx,
                     all.u32(family::queue_napi_id)};
}

void link_queues(std::vector<Nic>& nics, std::span<const QueueFact> queues, std::span<const NapiFact> napis) {
    for (const auto& fact : queues) {
        const auto nic = std::ranges::find(nics, fact.ifindex, &Nic::ifindex);
        if (nic == nics.end() || !fact.napi_id) continue;
        const auto queue = std::ranges::find_if(nic->queues, [&](const Queue& candidate) {
            return candidate.direction == fact.direction && candidate.index == fact.index;
        });
        if (queue == nic->queues.end()) continue; // made since sysfs was read: the event that tells of it reads again
        queue->napi_id = fact.napi_id;
        const auto napi = std::ranges::find_if(napis, [&](const NapiFact& candidate) {
            return candidate.ifindex == fact.ifindex && candidate.id == *fact.napi_id;
        });
        if (napi == napis.end()) continue;
        queue->irq = napi->irq;
        queue->napi_thread = napi->thread;
    }
}

std::optional<NapiThreadName> parse_napi_thread(std::string_view comm) {
    constexpr std::string_view prefix = "napi/";
    if (!comm.starts_with(prefix)) return std::nullopt;
    const auto rest = comm.substr(prefix.size());
    const auto dash = rest.rfind('-');
    if (rest.empty() || dash == 0) return std::nullopt;
    if (dash == std::string_view::npos) return NapiThreadName{std::string(rest), std::nullopt};
    const auto id = parse_number<unsigned>(rest.substr(dash + 1));
    const bool cut = comm.size() == 15; // TASK_COMM_LEN - 1: digits may be missing at the end
    if (!id && rest.size() > dash + 1) return NapiThreadName{std::string(rest), std::nullopt};
    return NapiThreadName{std::string(rest.substr(0, dash)), cut ? std::nullopt : id};
}

} // namespace affinityd::netdev
