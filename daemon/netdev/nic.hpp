// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace affinityd::netdev {

enum class Direction { rx, tx };

/// A software queue of an interface: /sys/class/net/IF/queues/rx-N or tx-N.
struct Queue {
    Direction direction = Direction::rx;
    unsigned index = 0;
    std::optional<unsigned> napi_id; ///< netdev family, queue-get
    std::optional<unsigned> irq;     ///< netdev family: queue -> napi -> irq; exact where it is there
    std::optional<int> napi_thread;  ///< tid of the threaded NAPI kernel thread, if any
    /// rps_cpus of an rx queue, xps_cpus of a tx queue; no value: there is no such file. Empty also if it
    /// cannot be read now.
    std::optional<CpuSet> steering;
    std::optional<unsigned> flow_count; ///< rps_flow_cnt of an rx queue; 0 also if it cannot be read now

    friend bool operator==(const Queue&, const Queue&) = default;
};

/// Hardware channels, `ethtool -l`. A combined channel serves a queue of each direction; no value: the
/// driver does not say. Source: Documentation/networking/ethtool-netlink.rst, CHANNELS_GET.
struct Channels {
    std::optional<unsigned> rx, tx, combined, other;                 ///< in use
    std::optional<unsigned> max_rx, max_tx, max_combined, max_other; ///< what the device can have

    friend bool operator==(const Channels&, const Channels&) = default;
};

/// An interface as the network stack sees it.
struct NicLink {
    std::string name;
    std::vector<std::string> other_names; ///< ip link property add ... altname; live only
    unsigned ifindex = 0;
    std::string mac;
    bool up = false;                ///< administratively up (IFF_UP)
    std::string operstate;          ///< "up", "down", "unknown", ...
    std::vector<std::string> lower; ///< names of lower devices: bond, team, VLAN, bridge, macvlan
    /// The port of a bond whose traffic arrives on one port at a time; "" while none has a link. No value:
    /// on all of them.
    std::optional<std::string> active_lower;
    std::string master;                 ///< the bridge, bond, switch ... that it is a port of; "": none
    bool is_representor = false;        ///< the switch's end of a virtual function or subfunction
    std::vector<std::string> addresses; ///< IPv4 and IPv6 without prefix length, ascending; live only
    /// The inode of its folder in sysfs, 0: not known. The inode survives other names, namespaces and
    /// numbers; an interface made anew has a new one.
    std::uint64_t folder = 0;
    /// A virtual one that no packets arrive on by themselves: dummy, loopback, tunnels. They come over
    /// another, by the route.
    bool is_detached = false;
    bool has_default_route = false;
    /// The interface is in another network namespace: its name is that of its device, and its queues are out
    /// of reach.
    bool is_moved = false;

    /// True if any of its names is one that `matches` takes.
    [[nodiscard]] bool is_called(const auto& matches) const {
        return matches(name) || std::ranges::any_of(other_names, matches);
    }
    friend bool operator==(const NicLink&, const NicLink&) = default;
};

/// The device of an interface, and where it is.
struct NicDevice {
    std::string driver; ///< "" if the device names none
    std::string device; ///< resolved device path below /sys, the identity that survives renames; "" = virtual
    std::string pci;    ///< PCI function "0000:41:00.0", virtio's parent included; "" if none
    std::string virtio; ///< "virtio3" for a virtio NIC, else ""
    std::optional<unsigned> node; ///< NUMA node; no value: unknown (the kernel's -1), never node 0 by mistake
    CpuSet local_cpus;            ///< near CPUs as the kernel says; empty: unknown, so none is nearer
    /// IRQ numbers of its own list, ascending; some may have no handler. The list of a sub-function is irqs/
    /// of its auxiliary device (Linux 6.11), not msi_irqs/ of the PCI function.
    std::vector<unsigned> msi_irqs;
    bool is_sub_function = false;
    std::optional<unsigned> legacy_irq; ///< device/irq, only where there is no msi_irqs

    friend bool operator==(const NicDevice&, const NicDevice&) = default;
};

/// A network interface with what placement needs of it.
struct Nic : NicLink, NicDevice {
    std::vector<Queue> queues;        ///< rx first, each ascending
    std::optional<Channels> channels; ///< live only
    bool threaded_napi = false;       ///< /sys/class/net/IF/threaded is 1

    friend bool operator==(const Nic&, const Nic&) = default;
};

/// The one of this number, of interfaces in ascending order of theirs; null: none. A host of containers has
/// thousands, and the kernel names each many times.
[[nodiscard]] inline Nic* find_nic(std::span<Nic> ascending, unsigned ifindex) {
    const auto at = std::ranges::lower_bound(ascending, ifindex, {}, &Nic::ifindex);
    return at == ascending.end() || at->ifindex != ifindex ? nullptr : &*at;
}

} // namespace affinityd::netdev
