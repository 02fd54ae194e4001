// SPDX-License-Identifier: Apache-2.0
#include "enforcer/irq_lookup.hpp"

#include "base/text.hpp"
#include "host/root.hpp"
#include "planner/flow_counts.hpp"

#include <algorithm>

namespace affinityd::enforcer {

namespace {

bool has_handler(const host::Root& root, unsigned number, const std::string& label) {
    const std::string folder = "irq/" + std::to_string(number);
    if (label.empty()) return root.proc().exists(folder);
    // The handler's name is a directory there, unless it holds a '/': then only its first owner is known by
    // the table.
    return label.find('/') == std::string::npos ? root.proc().exists(folder + "/" + label)
                                                : root.proc().exists(folder);
}

/// Vectors of the device and of its parent (virtio's hang on the PCI device above it).
std::vector<std::string> device_vectors(const host::Root& root, const std::string& device) {
    auto names = root.sys().list(device + "/msi_irqs").value_or(std::vector<std::string>{});
    if (names.empty()) {
        const auto slash = device.rfind('/');
        if (slash != std::string::npos)
            names =
                root.sys().list(device.substr(0, slash) + "/msi_irqs").value_or(std::vector<std::string>{});
    }
    return names;
}

} // namespace

std::optional<unsigned> find_irq(const host::Root& root, const planner::IrqMask& subject) {
    const auto vectors =
        subject.device.empty() ? std::vector<std::string>{} : device_vectors(root, subject.device);
    const bool listed =
        vectors.empty() || std::ranges::find(vectors, std::to_string(subject.irq)) != vectors.end();
    if (listed && has_handler(root, subject.irq, subject.label)) return subject.irq;
    if (subject.label.empty()) return std::nullopt;
    for (const auto& name :
         vectors.empty() ? root.proc().list("irq").value_or(std::vector<std::string>{}) : vectors)
        if (const auto number = parse_number<unsigned>(name);
            number && has_handler(root, *number, subject.label))
            return number;
    return std::nullopt;
}

std::string steering_path(const host::Root& root, const planner::SteeringMask& subject) {
    std::string nic = subject.nic;
    if (subject.device != subject.nic) {
        const auto names = root.sys().list(subject.device + "/net").value_or(std::vector<std::string>{});
        if (!names.empty() && std::ranges::find(names, nic) == names.end()) nic = names.front();
    }
    const char* file = planner::is_flow_count(subject)   ? "/rps_flow_cnt"
                       : subject.queue.starts_with("rx") ? "/rps_cpus"
                                                         : "/xps_cpus";
    return "class/net/" + nic + "/queues/" + planner::queue_of(subject) + file;
}

} // namespace affinityd::enforcer
