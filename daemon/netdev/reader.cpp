// SPDX-License-Identifier: Apache-2.0
#include "netdev/reader.hpp"

#include "base/text.hpp"
#include "host/root.hpp"
#include "netdev/addresses.hpp"
#include "netdev/channels.hpp"
#include "netdev/napi.hpp"

#include <algorithm>
#include <charconv>
#include <ranges>

#include <net/if.h>

namespace affinityd::netdev {

namespace {

constexpr std::string_view class_net = "class/net/";

bool is_digits(std::string_view text) { return parse_number<unsigned>(text).has_value(); }

/// "0000:41:00.0": domain of four to eight digits. Source: drivers/pci/probe.c, pci_setup_device.
bool is_function(std::string_view name) {
    const auto is_hex = [](std::string_view text) {
        return !text.empty() && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    };
    const auto parts = split(name, ':');
    if (parts.size() != 3 || parts[0].size() < 4 || parts[0].size() > 8 || parts[1].size() != 2 ||
        parts[2].size() != 4)
        return false;
    return is_hex(parts[0]) && is_hex(parts[1]) && is_hex(parts[2].substr(0, 2)) && parts[2][2] == '.' &&
           is_digits(parts[2].substr(3));
}

std::string_view last_part(std::string_view path) {
    const auto slash = path.rfind('/');
    return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string_view parent(std::string_view path) {
    const auto slash = path.rfind('/');
    return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

/// The device and its parents up to and with the first PCI function: where the attributes of a NIC may stand.
/// A virtio or Hyper-V device has none of its own, its PCI parent has; above the function there are bridges,
/// which are not meant.
std::vector<std::string> device_chain(std::string_view device) {
    std::vector<std::string> chain;
    for (auto path = device; !path.empty() && path != "devices" && chain.size() < 16; path = parent(path)) {
        chain.emplace_back(path);
        if (is_function(last_part(path))) break;
    }
    return chain;
}

void read_place(const host::Dir& sys, const std::vector<std::string>& chain, Nic& nic) {
    for (const auto& path : chain) {
        const auto node = sys.number(path + "/numa_node");
        if (!node) continue;
        if (*node >= 0 && *node <= CpuSet::max_cpu) nic.node = static_cast<unsigned>(*node);
        break;
    }
    for (const auto& path : chain) {
        auto cpus = sys.cpu_list(path + "/local_cpulist");
        if (!cpus) cpus = sys.cpu_mask(path + "/local_cpus");
        if (!cpus) continue;
        nic.local_cpus = std::move(*cpus);
        break;
    }
}

void read_vectors(const host::Dir& sys, const std::vector<std::string>& chain, Nic& nic) {
    bool has_list = false;
    for (const auto& path : chain) {
        for (const auto& name : sys.list(path + "/msi_irqs")) // files today, directories before Linux 3.14
            if (const auto number = parse_number<unsigned>(name)) nic.msi_irqs.push_back(*number);
        has_list = !nic.msi_irqs.empty();
        if (has_list) break;
    }
    std::ranges::sort(nic.msi_irqs);
    if (has_list) return;
    for (const auto& path : chain) {
        const auto number = sys.number(path + "/irq");
        if (!number) continue;
        if (*number > 0 && *number <= 0x7fffffff)
            nic.legacy_irq = static_cast<unsigned>(*number); // 0: the device has none
        break;
    }
}

/// The device an interface belongs to. Recordings may lack the link, but the interface's own path tells as
/// well:
/// .../0000:41:00.0/net/eth0.
std::optional<std::string> find_device(const host::Dir& sys, const std::string& base) {
    if (auto device = sys.resolve(base + "/device")) return device;
    const auto own = sys.resolve(base);
    if (!own || own->starts_with("devices/virtual/")) return std::nullopt;
    const auto net = parent(*own);
    if (!own->starts_with("devices/") || last_part(net) != "net") return std::nullopt;
    return std::string(parent(net));
}

void read_device(const host::Dir& sys, const std::string& base, Nic& nic) {
    const auto device = find_device(sys, base);
    if (!device) return;
    nic.device = *device;
    const auto chain = device_chain(*device);
    for (const auto& path : chain) {
        const auto name = last_part(path);
        if (is_function(name)) nic.pci = name;
        if (name.starts_with("virtio") && is_digits(name.substr(6))) nic.virtio = name;
    }
    if (const auto driver = sys.link(*device + "/driver"))
        nic.driver = last_part(*driver);
    else if (!nic.virtio.empty())
        nic.driver = "virtio_net"; // there is no other
    read_place(sys, chain, nic);
    read_vectors(sys, chain, nic);
}

void read_queues(const host::Dir& sys, const std::string& base, Nic& nic) {
    for (const auto& name : sys.list(base + "/queues")) {
        const bool receive = name.starts_with("rx-");
        if (!receive && !name.starts_with("tx-")) continue;
        const auto index = parse_number<unsigned>(std::string_view(name).substr(3));
        if (!index) continue;
        const auto path = base + "/queues/" + name;
        Queue queue;
        queue.direction = receive ? Direction::rx : Direction::tx;
        queue.index = *index;
        // A device with one transmit queue has the file and refuses to read it: the same as not having it.
        queue.steering = sys.cpu_mask(path + (receive ? "/rps_cpus" : "/xps_cpus"));
        if (receive)
            if (const auto count = sys.number(path + "/rps_flow_cnt");
                count && *count >= 0 && *count <= 0xffffffffLL)
                queue.flow_count = static_cast<unsigned>(*count);
        nic.queues.push_back(std::move(queue));
    }
    std::ranges::sort(nic.queues, {},
                      [](const Queue& queue) { return std::pair(queue.direction, queue.index); });
}

bool parse_up(std::string_view flags) {
    if (!flags.starts_with("0x")) return false;
    unsigned value = 0;
    const auto [end, status] = std::from_chars(flags.data() + 2, flags.data() + flags.size(), value, 16);
    return status == std::errc{} && end == flags.data() + flags.size() && (value & IFF_UP) != 0;
}

std::optional<Nic> read_nic(const host::Dir& sys, const std::string& name) {
    const auto base = std::string(class_net) + name;
    const auto ifindex = sys.number(base + "/ifindex");
    const auto own = sys.resolve(base);
    if (!ifindex && (!own || *own == base))
        return std::nullopt; // "bonding_masters" is a plain file among the interfaces
    Nic nic;
    nic.name = name;
    if (ifindex && *ifindex > 0 && *ifindex <= 0x7fffffff) nic.ifindex = static_cast<unsigned>(*ifindex);
    nic.mac = sys.text(base + "/address").value_or("");
    nic.up = parse_up(sys.text(base + "/flags").value_or(""));
    nic.operstate = sys.text(base + "/operstate").value_or("");
    nic.threaded_napi = sys.number(base + "/threaded").value_or(0) > 0;
    for (const auto& entry : sys.list(base))
        if (entry.starts_with("lower_")) nic.lower.push_back(entry.substr(6));
    read_device(sys, base, nic);
    read_queues(sys, base, nic);
    return nic;
}

} // namespace

Result<std::vector<Nic>> read_nics(const host::Root& root) {
    std::vector<Nic> nics;
    for (const auto& name : root.sys().list("class/net"))
        if (auto nic = read_nic(root.sys(), name)) nics.push_back(std::move(*nic));
    std::ranges::stable_sort(nics, {}, &Nic::ifindex);
    if (!root.is_live()) return nics;
    if (auto added = read_addresses(nics); !added) return std::unexpected(added.error());
    if (auto linked = read_napi(nics); !linked) return std::unexpected(linked.error());
    if (auto counted = read_channels(nics); !counted) return std::unexpected(counted.error());
    return nics;
}

} // namespace affinityd::netdev
