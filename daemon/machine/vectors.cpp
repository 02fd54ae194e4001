// SPDX-License-Identifier: Apache-2.0
#include "machine/vectors.hpp"

#include "machine/candidates.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace affinityd::machine {

namespace {

using irq::Irq;
using irq::Kind;
using netdev::Direction;
using netdev::Nic;

bool is_data(Kind kind) {
    return kind == Kind::rx || kind == Kind::tx || kind == Kind::txrx || kind == Kind::data_unknown;
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// The queues that netlink links to each IRQ.
struct Linked {
    std::optional<unsigned> rx;
    std::optional<unsigned> tx;
};

std::map<unsigned, Linked> linked_queues(const Nic& nic) {
    std::map<unsigned, Linked> linked;
    for (const auto& queue : nic.queues) {
        if (!queue.irq) continue;
        auto& slot = queue.direction == Direction::rx ? linked[*queue.irq].rx : linked[*queue.irq].tx;
        if (!slot || queue.index < *slot)
            slot = queue.index; // the first stands for several queues on one vector
    }
    return linked;
}

bool shares_function(const Nic& nic) {
    // The PCI function or bus object has several interfaces, and its list has the vectors of all.
    return nic.driver == "mlx4_core" || nic.driver == "mlx4_en" || nic.driver == "fsl_dpaa2_eth";
}

/// Decides which of the candidate handlers are the interface's.
class Owner {
  public:
    Owner(const Nic& nic, const std::vector<irq::Line>& lines) : nic_(nic) {
        for (const auto& line : lines)
            named_ = named_ || (in_list(line.irq) && line.label.device == nic.name &&
                                line.action.find(nic.name) != std::string::npos);
    }

    [[nodiscard]] bool in_list(unsigned number) const {
        return std::ranges::binary_search(nic_.msi_irqs, number);
    }

    [[nodiscard]] bool owns(const irq::Line& line) const {
        const auto& label = line.label;
        if (in_list(line.irq)) {
            if (label.device.empty() || label.device == nic_.name) return true;
            // A label keeps the name that the interface had when it requested the interrupt. So a renamed
            // interface owns vectors of its old name, unless some vectors of the list have its new one: then
            // the others belong to another interface on the same function.
            return !named_ && !shares_function(nic_);
        }
        if (!label.is_nic) return false;
        if (!nic_.msi_irqs.empty() && label.pci.empty() && label.virtio.empty() && label.platform.empty())
            return false;
        if (!label.pci.empty() && !nic_.pci.empty() && label.pci != nic_.pci)
            return false; // an interface of the same name in another network namespace
        if (label.device == nic_.name) return true;
        if (!label.device.empty()) return false;
        return (!label.pci.empty() && label.pci == nic_.pci) ||
               (!label.virtio.empty() && label.virtio == nic_.virtio);
    }

  private:
    const Nic& nic_;
    bool named_ = false;
};

Vector from_label(const irq::Line& line, Source source) {
    const auto& label = line.label;
    Vector vector{line.irq, label.kind, label.queue, std::nullopt, line.action, source, line.shared, false};
    if (label.kind == Kind::rx || label.kind == Kind::txrx)
        vector.queue = label.rx_queue ? label.rx_queue : label.queue;
    if (label.kind == Kind::tx && label.tx_queue) vector.queue = label.tx_queue;
    if (label.kind == Kind::txrx && label.tx_queue != vector.queue) vector.tx_queue = label.tx_queue;
    if (!is_data(label.kind)) vector.queue.reset();
    return vector;
}

void apply_netlink(Vector& vector, const Linked& linked) {
    const auto kind = linked.rx && linked.tx ? Kind::txrx : linked.rx ? Kind::rx : Kind::tx;
    const auto queue = linked.rx ? linked.rx : linked.tx;
    vector.clash = is_data(vector.kind) && vector.queue && vector.queue != queue;
    vector.kind = kind;
    vector.queue = queue;
    vector.tx_queue.reset();
    if (linked.rx && linked.tx && linked.rx != linked.tx) vector.tx_queue = linked.tx;
    vector.source = Source::netlink;
}

/// Vectors of the list whose labels fit no pattern must carry data if no other vector does.
void settle_unknown(std::vector<Vector>& vectors, const std::vector<bool>& recognised) {
    if (std::ranges::any_of(vectors, [](const Vector& vector) { return is_data(vector.kind); })) return;
    std::size_t open = 0;
    for (std::size_t at = 0; at < vectors.size(); ++at)
        if (!recognised[at] && !vectors[at].label.empty()) ++open;
    for (std::size_t at = 0; at < vectors.size(); ++at) {
        if (recognised[at] || vectors[at].label.empty()) continue;
        vectors[at].kind = open == 1 ? Kind::txrx : Kind::data_unknown;
    }
}

/// bcmgenet and stmmac give two lines of one device the same name.
void number_equal_labels(std::vector<Vector>& vectors) {
    std::map<std::string_view, unsigned> count;
    for (auto& vector : vectors)
        vector.ordinal = count[vector.label]++;
}

} // namespace

irq::Device to_device(const Nic& nic) {
    irq::Device device{nic.name, nic.driver, nic.pci, nic.virtio, {}, nic.msi_irqs};
    // SoC drivers name their lines after the platform device.
    if (nic.pci.empty() && nic.virtio.empty()) device.platform = last_part(nic.device);
    return device;
}

IrqMask irq_subject(const Nic& nic, const Vector& vector) {
    const bool is_line = vector.shared || nic.legacy_irq == vector.irq;
    return {nic.device.empty() ? nic.name : nic.device, vector.label, is_line ? 0 : vector.ordinal,
            vector.irq, is_line};
}

std::string_view to_string(Source source) {
    switch (source) {
    case Source::netlink:
        return "netlink";
    case Source::msi_irqs:
        return "msi_irqs";
    case Source::label:
        return "label";
    case Source::legacy:
        return "legacy";
    }
    return {};
}

std::string_view to_string(irq::Kind kind) {
    switch (kind) {
    case Kind::rx:
        return "rx";
    case Kind::tx:
        return "tx";
    case Kind::txrx:
        return "txrx";
    case Kind::control:
        return "control";
    case Kind::none:
        return "none";
    case Kind::data_unknown:
        return {};
    }
    return {};
}

std::vector<Vector> nic_vectors(const Nic& nic, const irq::InterruptTable& table) {
    return vectors_among(possible_lines({&nic, 1}, table).front(), nic, table.cpus.size());
}

std::vector<Vector> vectors_among(const std::vector<const Irq*>& candidates, const Nic& nic,
                                  std::size_t cpu_count) {
    const auto linked = linked_queues(nic);
    const auto device = to_device(nic);
    const auto lines = irq::classify(candidates, {&device, 1}, cpu_count);
    const Owner owner(nic, lines);
    std::map<unsigned, Vector> found;
    std::set<unsigned> recognised;
    for (const auto& line : lines) {
        const bool legacy = nic.legacy_irq == line.irq;
        const bool is_ours = owner.owns(line) || linked.contains(line.irq);
        if (!is_ours && !legacy) continue;
        // On a shared line the interface's own handler counts.
        if (const auto other = found.find(line.irq); other != found.end() && !(line.label.device == nic.name))
            continue;
        const Source source = owner.in_list(line.irq) ? Source::msi_irqs
                              : is_ours               ? Source::label
                                                      : Source::legacy;
        found.insert_or_assign(line.irq, from_label(line, source));
        if (line.label.is_nic) recognised.insert(line.irq);
    }
    for (const auto* line : candidates) { // vectors that the driver has not requested
        const bool listed = owner.in_list(line->number);
        if (!found.contains(line->number) && line->actions.empty() &&
            (listed || linked.contains(line->number)))
            found.emplace(line->number,
                          Vector{line->number, Kind::none, {}, {}, {}, Source::msi_irqs, false, false});
    }
    std::vector<Vector> vectors;
    std::vector<bool> known;
    for (auto& [number, vector] : found) {
        const auto link = linked.find(number);
        if (link != linked.end()) apply_netlink(vector, link->second);
        known.push_back(recognised.contains(number) || link != linked.end());
        vectors.push_back(std::move(vector));
    }
    settle_unknown(vectors, known);
    number_equal_labels(vectors);
    return vectors;
}

} // namespace affinityd::machine
