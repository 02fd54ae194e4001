// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "netdev/nic.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace affinityd::netdev {

/// An answer of napi-get. Source: Documentation/netlink/specs/netdev.yaml (Linux 6.8 and later).
struct NapiFact {
    unsigned ifindex = 0;
    unsigned id = 0;
    std::optional<unsigned> irq; ///< only where the driver tells
    std::optional<int> thread;   ///< tid of its kernel thread: threaded NAPI only

    friend bool operator==(const NapiFact&, const NapiFact&) = default;
};

/// An answer of queue-get.
struct QueueFact {
    unsigned ifindex = 0;
    unsigned index = 0;
    Direction direction = Direction::rx;
    std::optional<unsigned> napi_id; ///< only where the driver links its queues

    friend bool operator==(const QueueFact&, const QueueFact&) = default;
};

/// The attributes after the generic netlink header; no value if they are cut short or lack what every answer
/// has.
[[nodiscard]] std::optional<NapiFact> parse_napi(std::span<const std::byte> attributes);
[[nodiscard]] std::optional<QueueFact> parse_queue(std::span<const std::byte> attributes);

/// Sets napi_id, irq and napi_thread of the queues concerned; interfaces are in ascending order of their
/// numbers. Threads of an interface none of whose queues is linked go to its receive queues in the order of
/// their ids, if there are as many.
void link_queues(std::span<Nic> nics, std::span<const QueueFact> queues, std::span<const NapiFact> napis);

/// Asks the kernel's "netdev" family for the interfaces of this network namespace (for a single NIC, for that
/// interface alone) and links the queues. A kernel without the family (before 6.8), or one that refuses,
/// leaves the interfaces as they are. An Error: netlink does not work, or the queues changed all the time.
[[nodiscard]] Result<void> read_napi(std::span<Nic> nics);

/// A threaded NAPI kernel thread's name: "napi/eth0-8193". The interface's name may hold '-' itself. No value
/// also for one whose id was cut off: kernels before 5.17 cut the whole at 15 bytes, and the id may lack
/// digits. Source: net/core/dev.c, napi_kthread_create.
struct NapiThreadName {
    std::string interface;
    unsigned napi_id = 0;
};
[[nodiscard]] std::optional<NapiThreadName> parse_napi_thread(std::string_view comm);

/// A kernel thread as the inventory has it; the name stays the caller's.
struct NamedThread {
    int tid = 0;
    std::string_view comm;
};

/// For kernels and drivers that do not tell the NAPI of a queue by netlink: sets napi_thread of the queues of
/// interfaces with threaded NAPI that have none yet, and napi_id. With a NAPI id the thread is exact; else,
/// if there are as many threads as receive queues, they are taken in the order of their ids, which is the
/// order in which drivers add them (queue 0 first). Only kernel threads may be handed in.
void attach_napi_threads(std::vector<Nic>& nics, std::span<const NamedThread> threads);

/// The attributes of one answer to CHANNELS_GET: interface index and channels. No value if it
/// names no interface.
[[nodiscard]] std::optional<std::pair<unsigned, Channels>>
parse_channels(std::span<const std::byte> attributes);

/// Fills Nic::channels of interfaces in ascending order of their numbers, by ethtool netlink (Linux 5.6 and
/// later); those whose driver knows no channels are left alone. For a single NIC the kernel is asked for that
/// interface alone; a list of all ends at the first one that is not present (in power save, being reset), and
/// those after it have none. Source: ethnl_default_dumpit() in net/ethtool/netlink.c.
[[nodiscard]] Result<void> read_channels(std::span<Nic> nics);

} // namespace affinityd::netdev
