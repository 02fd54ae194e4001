// SPDX-License-Identifier: Apache-2.0
#include "machine/queue_files.hpp"

#include "base/text.hpp"
#include "host/root.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <vector>

#include <fmt/format.h>

namespace affinityd::machine {

namespace {

/// A handler's name is a folder in that of its line. There is none if the name holds a '/': then sysfs has
/// it, in a list separated by commas.
bool has_handler(const host::Root& root, unsigned number, const std::string& label) {
    const std::string folder = fmt::format("irq/{}", number);
    if (label.find('/') == std::string::npos) return root.proc().exists(folder + "/" + label);
    const auto actions = root.sys().text(fmt::format("kernel/irq/{}/actions", number));
    return actions ? ("," + *actions + ",").find("," + label + ",") != std::string::npos
                   : root.proc().exists(folder);
}

/// The numbers among the names in a folder, ascending.
Result<std::vector<unsigned>> numbers_in(const host::Dir& dir, const std::string& folder) {
    const auto names = dir.list(folder);
    if (!names) return std::unexpected(names.error());
    std::vector<unsigned> numbers;
    for (const auto& name : *names)
        if (const auto number = parse_number<unsigned>(name)) numbers.push_back(*number);
    std::ranges::sort(numbers);
    return numbers;
}

/// True if a label is another with the interface's present name in place of what stood there.
bool is_renamed(std::string_view before, std::string_view now, std::string_view nic) {
    const auto at = now.find(nic);
    if (nic.empty() || at == std::string_view::npos) return false;
    const auto head = now.substr(0, at);
    const auto tail = now.substr(at + nic.size());
    return before.size() > head.size() + tail.size() && before.starts_with(head) && before.ends_with(tail);
}

/// True for a recording that has the line's files, but left out the folder of its handler.
bool is_without_handlers(const host::Root& root, unsigned number) {
    const auto names = root.proc().list(fmt::format("irq/{}", number));
    return names && !names->empty() && std::ranges::all_of(*names, [](const std::string& name) {
               return name == "node" || name == "spurious" || name.find("affinity") != std::string::npos;
           });
}

/// True if the line is set up, and nothing handles it, or a handler that differs only in the name of the
/// device's interface: the driver requested it again after that was renamed.
bool is_still_its(const host::Root& root, const IrqMask& subject) {
    const auto actions = root.sys().text(fmt::format("kernel/irq/{}/actions", subject.irq));
    if (!actions || actions->empty()) return actions.has_value();
    const auto nics = root.sys().list(subject.device + "/net");
    return nics && std::ranges::any_of(*nics, [&](const std::string& nic) {
               return is_renamed(subject.label, *actions, nic);
           });
}

struct Lines {
    std::vector<unsigned> numbers; ///< ascending
    bool are_its_own = false;      ///< the device says so
};

/// The lines of the device: its vectors, or its one line if it has no vectors, or those of its parent
/// (virtio's hang on the PCI device above it). The parent comes last, since a PCIe port has vectors of its
/// own. Where the device does not say, all lines of the machine.
Result<Lines> candidates(const host::Root& root, const std::string& device) {
    std::vector<std::string> folders;
    if (!device.empty()) folders.push_back(device);
    if (const auto slash = device.rfind('/'); slash != std::string::npos)
        folders.push_back(device.substr(0, slash));
    for (const auto& folder : folders) {
        auto numbers = numbers_in(root.sys(), folder + "/msi_irqs");
        if (!numbers) return std::unexpected(numbers.error());
        if (!numbers->empty()) return Lines{std::move(*numbers), true};
        const auto number = root.sys().number(folder + "/irq");
        if (number && *number > 0 && *number <= std::numeric_limits<unsigned>::max())
            return Lines{{static_cast<unsigned>(*number)}, true};
    }
    auto numbers = numbers_in(root.proc(), "irq");
    if (!numbers) return std::unexpected(numbers.error());
    return Lines{std::move(*numbers), false};
}

bool is_path(const std::string& device) { return device.find('/') != std::string::npos; }

bool has_index(const host::Root& root, const std::string& nic, unsigned ifindex) {
    return root.sys().number(fmt::format("class/net/{}/ifindex", nic)) == ifindex;
}

/// A virtual interface's present name: by its index, or else the name that it had, unless another one has
/// that now.
Result<std::optional<std::string>> find_virtual(const host::Root& root, const std::string& nic,
                                                unsigned ifindex) {
    if (ifindex == 0 || has_index(root, nic, ifindex)) return nic;
    const auto names = root.sys().list("class/net");
    if (!names) return std::unexpected(names.error());
    const auto found =
        std::ranges::find_if(*names, [&](const auto& name) { return has_index(root, name, ifindex); });
    if (found != names->end()) return *found;
    const bool is_of_another = root.sys().number(fmt::format("class/net/{}/ifindex", nic)).has_value();
    return is_of_another ? std::nullopt : std::optional(nic);
}

/// The interface's present name, by its device if it has one. The index may change in other namespaces: of
/// an interface that was the device's only one, it need not be the same.
Result<std::optional<std::string>> find_nic(const host::Root& root, const auto& subject) {
    const auto& [device, nic] = std::tie(subject.device, subject.nic);
    if (!is_path(device)) return find_virtual(root, nic, subject.ifindex);
    auto names = root.sys().list(device + "/net");
    if (!names) return std::unexpected(names.error());
    const auto is_its = [&](const std::string& name) {
        return root.sys().number(fmt::format("{}/net/{}/ifindex", device, name)) == subject.ifindex;
    };
    const bool has_name = std::ranges::find(*names, nic) != names->end();
    if (has_name && (subject.ifindex == 0 || is_its(nic))) return nic;
    if (const auto found = std::ranges::find_if(*names, is_its);
        subject.ifindex != 0 && found != names->end())
        return *found;
    if (subject.is_port) return std::nullopt;
    if (has_name) return nic;
    if (names->size() == 1) return std::move(names->front());
    return std::nullopt;
}

Result<std::optional<Setting>> read_cpus(const host::Dir& dir, const std::string& path,
                                         Result<CpuSet> (*parse)(std::string_view)) {
    const auto text = dir.read(path);
    if (!text) return std::unexpected(text.error());
    if (!*text) return std::nullopt;
    auto cpus = parse(trim_text(**text));
    if (!cpus) return std::unexpected(cpus.error());
    return std::move(*cpus);
}

Result<std::optional<Setting>> read_count(const host::Dir& dir, const std::string& path) {
    const auto text = dir.read(path);
    if (!text) return std::unexpected(text.error());
    if (!*text) return std::nullopt;
    const auto entries = parse_number<std::uint32_t>(trim_text(**text));
    if (!entries) return fail("no count of flows", path);
    return FlowCount{*entries};
}

/// The present name of a virtual interface, if there is one of its index.
std::optional<std::string> interface_of(const host::Root& root, const auto& subject) {
    if (subject.device.empty()) return std::nullopt; // the machine's flow table
    const auto name = find_virtual(root, subject.nic, subject.ifindex).value_or(std::nullopt);
    return name && has_index(root, *name, subject.ifindex) ? name : std::nullopt;
}

/// The number of a line that devices share is its own as long as it is no message-signaled interrupt, whose
/// numbers are given out anew. The original is put back also when no device uses the line any more.
std::optional<unsigned> find_line(const host::Root& root, unsigned number) {
    if (!root.proc().exists(fmt::format("irq/{}", number))) return std::nullopt;
    const auto chip = root.sys().text(fmt::format("kernel/irq/{}/chip_name", number));
    const bool is_message = chip && chip->find("MSI") != std::string::npos;
    return is_message ? std::nullopt : std::optional(number);
}

} // namespace

Result<std::optional<unsigned>> find_irq(const host::Root& root, const IrqMask& subject) {
    if (subject.is_line) return find_line(root, subject.irq);
    if (is_path(subject.device)) { // another device may have the label by now
        const auto device = root.sys().list(subject.device);
        if (!device) return std::unexpected(device.error());
        if (device->empty() && !root.sys().exists(subject.device)) return std::nullopt;
    }
    // The first of its label, of no known device: all lines of the machine are looked at only if it has
    // moved.
    const bool is_first = subject.ordinal == 0 && !is_path(subject.device) && !subject.label.empty();
    if (is_first && has_handler(root, subject.irq, subject.label)) return subject.irq;
    const auto lines = candidates(root, subject.device);
    if (!lines) return std::unexpected(lines.error());
    if (subject.label.empty()) // no handler: only the number tells the line
        return std::ranges::binary_search(lines->numbers, subject.irq) ? std::optional(subject.irq)
                                                                       : std::nullopt;
    unsigned ordinal = 0;
    for (const unsigned number : lines->numbers)
        if (has_handler(root, number, subject.label) && ordinal++ == subject.ordinal) return number;
    // Some drivers free their handlers while the link is down (igb, e1000e, vmxnet3). Number and mask stay,
    // and the handlers come back to them, maybe under the interface's new name.
    const bool is_owned = lines->are_its_own && std::ranges::binary_search(lines->numbers, subject.irq);
    if (is_owned && is_still_its(root, subject)) return subject.irq;
    return !root.is_live() && is_without_handlers(root, subject.irq) ? std::optional(subject.irq)
                                                                     : std::nullopt;
}

bool has_device(const host::Root& root, const Subject& subject) {
    return std::visit(
        [&](const auto& what) {
            if constexpr (requires { what.device; })
                if (is_path(what.device)) return root.sys().exists(what.device);
            // A virtual interface that has fewer queues for a while.
            if constexpr (requires {
                              what.queue;
                              what.ifindex;
                          })
                return what.ifindex != 0 && interface_of(root, what).has_value();
            return false;
        },
        subject);
}

Result<std::optional<std::string>> queue_file(const host::Root& root, const SteeringMask& subject) {
    const auto nic = find_nic(root, subject);
    if (!nic || !*nic) return nic;
    const bool is_rx = subject.direction == Direction::rx;
    return fmt::format("class/net/{}/queues/{}-{}/{}", **nic, is_rx ? "rx" : "tx", subject.queue,
                       is_rx ? "rps_cpus" : "xps_cpus");
}

Result<std::optional<std::string>> queue_file(const host::Root& root, const FlowTable& subject) {
    if (subject.is_machine()) return std::nullopt;
    const auto nic = find_nic(root, subject);
    if (!nic || !*nic) return nic;
    return fmt::format("class/net/{}/queues/rx-{}/rps_flow_cnt", **nic, subject.queue);
}

std::pair<const host::Dir&, const char*> kernel_file(const host::Root& root, const KernelMask& subject) {
    if (subject.of == KernelMask::Of::work) return {root.sys(), "devices/virtual/workqueue/cpumask"};
    return {root.proc(), "irq/default_smp_affinity"};
}

Result<std::optional<Setting>> read_setting(const host::Root& root, const KernelMask& subject) {
    const auto [dir, path] = kernel_file(root, subject);
    return read_cpus(dir, path, CpuSet::parse_mask);
}

Result<std::optional<Setting>> read_setting(const host::Root& root, const IrqMask& subject) {
    const auto number = find_irq(root, subject);
    if (!number) return std::unexpected(number.error());
    if (!*number) return std::nullopt;
    return read_cpus(root.proc(), fmt::format("irq/{}/smp_affinity_list", **number), CpuSet::parse_list);
}

Result<std::optional<Setting>> read_setting(const host::Root& root, const SteeringMask& subject) {
    const auto path = queue_file(root, subject);
    if (!path) return std::unexpected(path.error());
    if (!*path) return std::nullopt;
    return read_cpus(root.sys(), **path, CpuSet::parse_mask);
}

Result<std::optional<Setting>> read_setting(const host::Root& root, const FlowTable& subject) {
    if (subject.is_machine()) return read_count(root.proc(), machine_flow_entries);
    const auto path = queue_file(root, subject);
    if (!path) return std::unexpected(path.error());
    if (!*path) return std::nullopt;
    return read_count(root.sys(), **path);
}

} // namespace affinityd::machine
