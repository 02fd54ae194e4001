// SPDX-License-Identifier: Apache-2.0
#include "netdev/reader.hpp"

#include "base/text.hpp"
#include "host/root.hpp"
#include "netdev/addresses.hpp"
#include "netdev/napi.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ranges>
#include <set>
#include <span>

#include <net/if.h>
#include <net/if_arp.h>

namespace affinityd::netdev {

namespace {

constexpr std::string_view class_net = "class/net/";

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string_view parent(std::string_view path) {
    const auto slash = path.rfind('/');
    return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

/// The device and its parents up to and with the first PCI function: where the attributes of a NIC may
/// be. A virtio or Hyper-V device has none of its own, its PCI parent has; above the function there are only
/// bridges.
std::vector<std::string> device_chain(std::string_view device) {
    std::vector<std::string> chain;
    for (auto path = device; !path.empty() && path != "devices" && chain.size() < 16; path = parent(path)) {
        chain.emplace_back(path);
        if (is_pci_name(last_part(path))) break;
    }
    return chain;
}

/// CPUs beyond these would only take memory, in each of thousands of queues of a hostile recording.
CpuSet possible_cpus(const host::Dir& sys) {
    return sys.cpu_list("devices/system/cpu/possible").value_or(CpuSet::range(0, 8191));
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
        nic.local_cpus = *cpus & possible_cpus(sys);
        break;
    }
}

Result<void> read_vectors(const host::Dir& sys, const std::vector<std::string>& chain, Nic& nic) {
    for (const auto& path : chain) {
        const auto names = sys.list(path + (nic.is_sub_function ? "/irqs" : "/msi_irqs"));
        if (!names) return std::unexpected(names.error());
        for (const auto& name : *names) // files today, directories before Linux 3.14
            if (const auto number = parse_number<unsigned>(name)) nic.msi_irqs.push_back(*number);
        if (!nic.msi_irqs.empty() || nic.is_sub_function) break;
    }
    std::ranges::sort(nic.msi_irqs);
    if (!nic.msi_irqs.empty() || nic.is_sub_function) return {};
    for (const auto& path : chain) {
        const auto number = sys.number(path + "/irq");
        if (!number) continue;
        if (*number > 0 && *number <= 0x7fffffff)
            nic.legacy_irq = static_cast<unsigned>(*number); // 0: the device has none
        break;
    }
    return {};
}

/// The device an interface belongs to. Recordings may lack the link; then the interface's own path says
/// it: .../0000:41:00.0/net/eth0.
std::optional<std::string> find_device(const host::Dir& sys, const std::string& base) {
    if (auto device = sys.resolve(base + "/device")) return device;
    const auto own = sys.resolve(base);
    if (!own || own->starts_with("devices/virtual/")) return std::nullopt;
    const auto net = parent(*own);
    if (!own->starts_with("devices/") || last_part(net) != "net") return std::nullopt;
    return std::string(parent(net));
}

Result<void> read_device(const host::Dir& sys, const std::string& device, Nic& nic) {
    nic.device = device;
    const auto chain = device_chain(device);
    for (const auto& path : chain) {
        const auto name = last_part(path);
        if (is_pci_name(name)) nic.pci = name;
        if (name.starts_with("virtio") && parse_number<unsigned>(name.substr(6))) nic.virtio = name;
    }
    if (const auto driver = sys.link(device + "/driver"))
        nic.driver = last_part(*driver);
    else if (!nic.virtio.empty())
        nic.driver = "virtio_net"; // there is no other
    nic.is_sub_function = last_part(sys.link(device + "/subsystem").value_or("")) == "auxiliary";
    read_place(sys, chain, nic);
    return read_vectors(sys, chain, nic);
}

/// An empty set: there is no map. No value: the map is there, and cannot be read for a moment.
std::optional<CpuSet> read_map(const host::Dir& sys, const std::string& path) {
    const auto text = sys.read(path);
    if (!text) return CpuSet{};
    auto cpus = CpuSet::parse_mask(text->value_or(""));
    return cpus ? std::optional(std::move(*cpus)) : std::nullopt;
}

std::optional<unsigned> read_flow_count(const host::Dir& sys, const std::string& path) {
    const auto text = sys.read(path);
    return text ? parse_number<unsigned>(trim_text(text->value_or(""))) : 0;
}

void read_queue(const host::Dir& sys, const std::string& name, Nic& nic) {
    const bool receive = name.starts_with("rx-");
    if (!receive && !name.starts_with("tx-")) return;
    const auto index = parse_number<unsigned>(std::string_view(name).substr(3));
    if (!index) return;
    const auto path = std::string(class_net) + nic.name + "/queues/" + name;
    Queue queue;
    queue.direction = receive ? Direction::rx : Direction::tx;
    queue.index = *index;
    // A device with one transmit queue has the file and refuses to read it: the same as not having it.
    queue.steering = read_map(sys, path + (receive ? "/rps_cpus" : "/xps_cpus"));
    if (queue.steering) *queue.steering &= possible_cpus(sys);
    if (receive) queue.flow_count = read_flow_count(sys, path + "/rps_flow_cnt");
    nic.queues.push_back(std::move(queue));
}

void sort_queues(Nic& nic) {
    std::ranges::sort(nic.queues, {},
                      [](const Queue& queue) { return std::pair(queue.direction, queue.index); });
}

Result<std::vector<std::string>> list_queues(const host::Dir& sys, const std::string& name) {
    return sys.list(std::string(class_net) + name + "/queues");
}

/// The kernel's own rule, so that a name cannot lead elsewhere. Source: net/core/dev.c, dev_valid_name.
bool is_interface_name(std::string_view name) {
    return !name.empty() && name.size() < IFNAMSIZ && name != "." && name != ".." &&
           name.find_first_of("/: \t\n\v\f\r") == std::string_view::npos;
}

unsigned parse_flags(std::string_view flags) {
    if (!flags.starts_with("0x")) return 0;
    unsigned value = 0;
    const auto [end, status] = std::from_chars(flags.data() + 2, flags.data() + flags.size(), value, 16);
    return status == std::errc{} && end == flags.data() + flags.size() ? value : 0;
}

/// Which port of a bond carries the traffic, where the others are spares. Source:
/// Documentation/networking/bonding.rst: with balance-tlb, too, one port receives.
std::optional<std::string> read_active_lower(const host::Dir& sys, const std::string& base) {
    const auto mode = sys.text(base + "/bonding/mode").value_or("");
    if (!mode.starts_with("active-backup") && !mode.starts_with("balance-tlb")) return std::nullopt;
    return sys.text(base + "/bonding/active_slave").value_or("");
}

/// "pf0vf3", "c1pf0sf7": a port of the NIC's own switch that leads to a function given away. The uplink is
/// "p0". Source: Documentation/networking/representors.rst, net/core/devlink.c.
bool is_representor_name(std::string_view port) {
    const auto skip = [&](std::string_view word) {
        if (!port.starts_with(word)) return false;
        const auto digits = port.find_first_not_of("0123456789", word.size());
        if (digits == word.size() || port.size() == word.size()) return false;
        port.remove_prefix(std::min(digits, port.size()));
        return true;
    };
    skip("c");
    return skip("pf") && (skip("vf") || skip("sf")) && port.empty();
}

bool is_of_kind(const host::Dir& sys, std::string_view name, std::string_view kind) {
    const auto text = sys.text(std::string(class_net) + std::string(name) + "/uevent").value_or("");
    return ("\n" + text + "\n").contains("\nDEVTYPE=" + std::string(kind) + "\n");
}

/// The driver of a virtual interface that takes ports, as ethtool calls it; "": another one.
std::string port_taker(const host::Dir& sys, const std::string& name) {
    if (is_of_kind(sys, name, "bond") || sys.exists(std::string(class_net) + name + "/bonding"))
        return "bonding";
    return is_of_kind(sys, name, "bridge") ? "bridge" : "";
}

/// Reads its master and its ports. A routing domain (VRF) is no switch: an interface in it is the
/// host's as before.
void read_stack(const host::Dir& sys, const std::string& base, const std::vector<std::string>& entries,
                Nic& nic) {
    for (const auto& entry : entries)
        if (entry.starts_with("lower_")) nic.lower.push_back(entry.substr(6));
    if (!nic.lower.empty()) nic.active_lower = read_active_lower(sys, base);
    if (const auto master = sys.link(base + "/master"); master && !is_of_kind(sys, last_part(*master), "vrf"))
        nic.master = last_part(*master);
}

/// 0: not known.
std::uint64_t folder_number(const host::Dir& sys, const std::string& folder) {
    const auto stamp = sys.stamp(folder).value_or("");
    const auto parts = split(stamp, ' '); // device, inode, ...
    return parts.size() < 2 ? 0 : parse_number<std::uint64_t>(parts[1]).value_or(0);
}

/// Reads one interface from sysfs, but for its queues; no value: there is no such interface.
Result<std::optional<Nic>> read_files(const host::Dir& sys, const std::string& name) {
    const auto base = std::string(class_net) + name;
    const auto index = sys.read(base + "/ifindex");
    if (!index) return std::unexpected(index.error());
    const auto ifindex = *index ? parse_number<unsigned>(trim_text(**index)) : std::nullopt;
    const auto own = sys.resolve(base);
    if (!ifindex && (!own || *own == base))
        return std::nullopt; // "bonding_masters" is a plain file among the interfaces
    const auto entries = sys.list(base);
    if (!entries) return std::unexpected(entries.error());
    Nic nic;
    nic.name = name;
    if (ifindex && *ifindex <= 0x7fffffff) nic.ifindex = *ifindex;
    nic.folder = folder_number(sys, base);
    nic.mac = sys.text(base + "/address").value_or("");
    const auto flags = parse_flags(sys.text(base + "/flags").value_or(""));
    nic.up = (flags & IFF_UP) != 0;
    nic.operstate = sys.text(base + "/operstate").value_or("");
    nic.threaded_napi = sys.number(base + "/threaded").value_or(0) > 0;
    read_stack(sys, base, *entries, nic);
    if (const auto device = find_device(sys, base))
        if (auto read = read_device(sys, *device, nic); !read) return std::unexpected(read.error());
    if (nic.device.empty()) nic.driver = port_taker(sys, name);
    nic.is_detached = nic.device.empty() && nic.lower.empty() &&
                      ((flags & IFF_NOARP) != 0 || sys.number(base + "/type").value_or(1) != ARPHRD_ETHER);
    if (!nic.device.empty())
        nic.is_representor = is_representor_name(sys.text(base + "/phys_port_name").value_or(""));
    return nic;
}

} // namespace

Result<std::optional<Nic>> read_moved(const host::Root& root, const std::string& folder) {
    const auto& sys = root.sys();
    const auto device = sys.resolve(folder);
    if (!device || !sys.link(*device + "/driver") || !sys.exists(*device + "/net")) return std::nullopt;
    const auto here = sys.list(*device + "/net"); // without those of other namespaces
    if (!here) return std::unexpected(here.error());
    if (!here->empty()) return std::nullopt;
    Nic nic;
    nic.name = last_part(*device);
    nic.is_moved = true;
    if (auto read = read_device(sys, *device, nic); !read) return std::unexpected(read.error());
    return nic;
}

/// Names and flags stand at fixed places of a line. Source: net/ipv4/fib_trie.c, net/ipv6/route.c.
std::set<std::string, std::less<>> default_routes(const host::Dir& proc, const std::string& process) {
    constexpr std::size_t most_text = 1U << 20; // of a router with very many routes the first
    constexpr std::string_view no_bits = "00000000000000000000000000000000";
    std::set<std::string, std::less<>> names;
    const auto lines = [&](const char* file, const auto& take) {
        const auto text = proc.read(process + file, most_text);
        if (!text || !*text) return;
        for (const auto line : split(**text, '\n'))
            take(split_words(line));
    };
    lines("net/route", [&](const auto& words) {
        if (words.size() > 7 && words[1] == "00000000" && words[7] == "00000000") names.emplace(words[0]);
    });
    lines("net/ipv6_route", [&](const auto& words) {
        if (words.size() > 9 && words[0] == no_bits && words[1] == "00") names.emplace(words[9]);
    });
    names.erase("lo"); // a route that refuses
    return names;
}

Result<void> NicReader::begin_nic() {
    auto nic = read_files(root_->sys(), names_[next_]);
    if (!nic) return std::unexpected(nic.error());
    if (!*nic) {
        ++next_;
        return {};
    }
    auto queues = list_queues(root_->sys(), names_[next_]);
    if (!queues) return std::unexpected(queues.error());
    nics_.push_back(std::move(**nic));
    queues_ = std::move(*queues);
    next_queue_ = 0;
    stage_ = Stage::queues;
    return {};
}

void NicReader::read_queue() {
    if (next_queue_ < queues_.size()) {
        netdev::read_queue(root_->sys(), queues_[next_queue_++], nics_.back());
        return;
    }
    sort_queues(nics_.back());
    ++next_;
    stage_ = Stage::files;
}

Result<void> NicReader::go_on() {
    switch (stage_) {
    case Stage::list: {
        auto names = root_->sys().list("class/net");
        if (!names) return std::unexpected(names.error());
        names_ = std::move(*names);
        stage_ = Stage::files;
        return {};
    }
    case Stage::files:
        if (next_ < names_.size()) return begin_nic();
        std::ranges::stable_sort(nics_, {}, &Nic::ifindex);
        for (const auto names = default_routes(root_->proc(), ""); auto& nic : nics_)
            nic.has_default_route = names.contains(nic.name);
        stage_ = root_->is_live() ? Stage::names : Stage::done;
        return {};
    case Stage::queues:
        read_queue();
        return {};
    case Stage::names:
        stage_ = Stage::addresses;
        return read_other_names(nics_);
    case Stage::addresses: {
        auto listed = read_addresses(nics_);
        next_ = 0;
        stage_ = !listed && listed.error().code == EAGAIN ? Stage::each_address : Stage::napi;
        return stage_ == Stage::napi ? std::move(listed) : Result<void>();
    }
    case Stage::each_address:
        while (next_ < nics_.size() && nics_[next_].ifindex == 0) // which would ask for those of all
            ++next_;
        if (next_ < nics_.size()) return read_addresses({&nics_[next_++], 1});
        stage_ = Stage::napi;
        return {};
    case Stage::napi:
        stage_ = Stage::channels;
        return read_napi(nics_);
    case Stage::channels:
        stage_ = Stage::done;
        return read_channels(nics_);
    case Stage::done:
        return {};
    }
    return {};
}

Result<bool> NicReader::step(const std::function<bool()>& out_of_time) {
    while (stage_ != Stage::done) {
        if (const auto done = go_on(); !done) return std::unexpected(done.error());
        if (out_of_time()) break;
    }
    return stage_ == Stage::done;
}

Result<std::vector<Nic>> read_nics(const host::Root& root) {
    NicReader reader(root);
    while (true) {
        const auto done = reader.step([] { return false; });
        if (!done) return std::unexpected(done.error());
        if (*done) return reader.take();
    }
}

Result<std::optional<Nic>> read_nic(const host::Root& root, const std::string& name) {
    if (!is_interface_name(name)) return std::nullopt;
    auto nic = read_files(root.sys(), name);
    if (!nic || !*nic) return nic;
    const auto queues = list_queues(root.sys(), name);
    if (!queues) return std::unexpected(queues.error());
    for (const auto& queue : *queues)
        read_queue(root.sys(), queue, **nic);
    sort_queues(**nic);
    (*nic)->has_default_route = default_routes(root.proc(), "").contains(name);
    if (!root.is_live()) return nic;
    for (auto* ask : {read_addresses, read_other_names, read_napi, read_channels})
        if (auto asked = ask({&**nic, 1}); !asked) return std::unexpected(asked.error());
    return nic;
}

} // namespace affinityd::netdev
