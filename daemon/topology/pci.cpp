// SPDX-License-Identifier: Apache-2.0
#include "topology/pci.hpp"

#include "base/text.hpp"
#include "host/root.hpp"
#include "topology/reader.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace affinityd::topology {

namespace {

struct ClassName {
    unsigned code; ///< 16 bits: class and subclass; subclass ff: any that is not named
    std::string_view name;
};

// Of the class codes in include/linux/pci_ids.h those that move data for programs.
constexpr std::array names{ClassName{0x0104, "RAID"},       ClassName{0x0106, "SATA"},
                           ClassName{0x0107, "SAS"},        ClassName{0x0108, "NVMe"},
                           ClassName{0x01ff, "storage"},    ClassName{0x0200, "Ethernet"},
                           ClassName{0x0207, "InfiniBand"}, ClassName{0x02ff, "network"},
                           ClassName{0x03ff, "GPU"},        ClassName{0x12ff, "accelerator"}};

unsigned class_of(const host::Dir& device) {
    const auto text = device.text("class");
    if (!text || !text->starts_with("0x")) return 0;
    unsigned code = 0;
    const auto [end, status] = std::from_chars(text->data() + 2, text->data() + text->size(), code, 16);
    return status == std::errc{} && end == text->data() + text->size() && code <= 0xffffff ? code : 0;
}

std::string driver_of(const host::Dir& device) {
    const auto target = device.link("driver");
    return target ? target->substr(target->rfind('/') + 1) : std::string();
}

} // namespace

std::string_view pci_class_name(unsigned class_code) {
    const unsigned code = class_code >> 8;
    const auto found = std::ranges::find_if(names, [&](const ClassName& each) {
        return each.code == code || ((each.code & 0xff) == 0xff && each.code >> 8 == code >> 8);
    });
    return found == names.end() ? std::string_view() : found->name;
}

Result<std::vector<PciDevice>> read_pci_devices(const host::Root& root) {
    const auto addresses = root.sys().list("bus/pci/devices");
    if (!addresses) return std::unexpected(addresses.error());
    std::vector<PciDevice> devices;
    if (addresses->empty()) return devices;
    const auto all = root.sys().dir("bus/pci/devices");
    if (!all) return std::unexpected(all.error());
    // What lies beyond would only take memory, in each of thousands of devices of a hostile recording.
    const CpuSet possible =
        root.sys().cpu_list("devices/system/cpu/possible").value_or(CpuSet::range(0, greatest_number / 8));
    for (const auto& address : *addresses) {
        const auto folder = all->dir(address);
        if (!folder) continue;
        PciDevice device{
            .address = address, .driver = {}, .class_code = class_of(*folder), .node = {}, .local_cpus = {}};
        if (pci_class_name(device.class_code).empty()) continue;
        device.driver = driver_of(*folder);
        if (const auto node = folder->number("numa_node"); node && *node >= 0 && *node <= greatest_number)
            device.node = static_cast<unsigned>(*node);
        auto near = folder->cpu_list("local_cpulist");
        if (!near) near = folder->cpu_mask("local_cpus");
        device.local_cpus = near.value_or(CpuSet{}) & possible;
        devices.push_back(std::move(device));
    }
    return devices;
}

} // namespace affinityd::topology
