// SPDX-License-Identifier: Apache-2.0
#include "machine/queue_files.hpp"

#include "base/text.hpp"
#include "host/root.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include <fmt/format.h>

namespace affinityd::machine {

namespace {

/// A handler's name is a folder in that of its line. There is none if the name holds a '/': then sysfs has
/// it, in a list separated by commas.
bool has_handler(const host::Root& root, unsigned number, const std::string& label) {
    const std::string folder = fmt::format("irq/{}", number);
    if (label.empty()) return root.proc().exists(folder);
    if (label.find('/') == std::string::npos) return root.proc().exists(folder + "/" + label);
    const auto actions = root.sys().text(fmt::format("kernel/irq/{}/actions", number));
    return actions ? ("," + *actions + ",").find("," + label + ",") != std::string::npos
                   : root.proc().exists(folder);
}

std::vector<unsigned> numbers_of(const std::vector<std::string>& names) {
    std::vector<unsigned> numbers;
    for (const auto& name : names)
        if (const auto number = parse_number<unsigned>(name)) numbers.push_back(*number);
    std::ranges::sort(numbers);
    return numbers;
}

/// The lines of the device: its vectors, or those of its parent (virtio's hang on the PCI device above it),
/// or the one line of a device without vectors. Empty: the device does not say.
std::vector<unsigned> device_lines(const host::Root& root, const std::string& device) {
    std::vector<std::string> folders{device};
    if (const auto slash = device.rfind('/'); slash != std::string::npos)
        folders.push_back(device.substr(0, slash));
    for (const auto& folder : folders)
        if (auto numbers = numbers_of(root.sys().list(folder + "/msi_irqs")); !numbers.empty())
            return numbers;
    for (const auto& folder : folders) {
        const auto number = root.sys().number(folder + "/irq");
        if (number && *number > 0 && *number <= std::numeric_limits<unsigned>::max())
            return {static_cast<unsigned>(*number)};
    }
    return {};
}

bool is_path(const std::string& device) { return device.find('/') != std::string::npos; }

/// The interface's present name, by its device. Virtual interfaces have only their name.
std::optional<std::string> find_nic(const host::Root& root, const std::string& device,
                                    const std::string& nic) {
    if (!is_path(device)) return nic;
    const auto names = root.sys().list(device + "/net");
    if (std::ranges::find(names, nic) != names.end()) return nic;
    if (names.size() == 1) return names.front();
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

/// No interface was found for a device: because it is gone, or because no folder can be opened?
Result<std::optional<Setting>> absent_nic(const host::Root& root) {
    if (const auto folder = root.sys().dir("class/net"); !folder && !host::means_absent(folder.error().code))
        return std::unexpected(folder.error());
    return std::nullopt;
}

} // namespace

std::optional<unsigned> find_irq(const host::Root& root, const IrqMask& subject) {
    if (is_path(subject.device) && !root.sys().exists(subject.device)) return std::nullopt;
    std::vector<unsigned> lines;
    if (!subject.device.empty()) lines = device_lines(root, subject.device);
    if (subject.label.empty()) { // no handler: only the number tells the line
        const bool is_listed = lines.empty() || std::ranges::binary_search(lines, subject.irq);
        return is_listed && has_handler(root, subject.irq, {}) ? std::optional(subject.irq) : std::nullopt;
    }
    if (lines.empty()) lines = numbers_of(root.proc().list("irq"));
    unsigned ordinal = 0;
    for (const unsigned number : lines)
        if (has_handler(root, number, subject.label) && ordinal++ == subject.ordinal) return number;
    return std::nullopt;
}

std::optional<std::string> queue_file(const host::Root& root, const SteeringMask& subject) {
    const auto nic = find_nic(root, subject.device, subject.nic);
    if (!nic) return std::nullopt;
    const bool is_rx = subject.direction == Direction::rx;
    return fmt::format("class/net/{}/queues/{}-{}/{}", *nic, is_rx ? "rx" : "tx", subject.queue,
                       is_rx ? "rps_cpus" : "xps_cpus");
}

std::optional<std::string> queue_file(const host::Root& root, const FlowTable& subject) {
    const auto nic = subject.is_machine() ? std::nullopt : find_nic(root, subject.device, subject.nic);
    if (!nic) return std::nullopt;
    return fmt::format("class/net/{}/queues/rx-{}/rps_flow_cnt", *nic, subject.queue);
}

Result<std::optional<Setting>> read_setting(const host::Root& root, const IrqMask& subject) {
    const auto number = find_irq(root, subject);
    if (number)
        return read_cpus(root.proc(), fmt::format("irq/{}/smp_affinity_list", *number), CpuSet::parse_list);
    // It was not found: because it is gone, or because no folder can be opened?
    if (const auto folder = root.proc().dir("irq"); !folder && !host::means_absent(folder.error().code))
        return std::unexpected(folder.error());
    return std::nullopt;
}

Result<std::optional<Setting>> read_setting(const host::Root& root, const SteeringMask& subject) {
    const auto path = queue_file(root, subject);
    if (!path) return absent_nic(root);
    return read_cpus(root.sys(), *path, CpuSet::parse_mask);
}

Result<std::optional<Setting>> read_setting(const host::Root& root, const FlowTable& subject) {
    if (subject.is_machine()) return read_count(root.proc(), machine_flow_entries);
    const auto path = queue_file(root, subject);
    if (!path) return absent_nic(root);
    return read_count(root.sys(), *path);
}

} // namespace affinityd::machine
