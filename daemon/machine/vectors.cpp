// SPDX-License-Identifier: Apache-2.0
#include "machine/vectors.hpp"

#include "machine/labels.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_map>

namespace affinityd::machine {

namespace {

using irq::Irq;
using irq::Kind;
using netdev::Direction;
using netdev::Nic;

using irq::is_data;

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('/') + 1); }

using Places = std::vector<std::size_t>; ///< of interfaces

/// The interface whose line one may be, by what is known of it.
struct Index {
    std::unordered_map<unsigned, Places> numbers;
    std::unordered_map<std::string_view, Places> functions;   ///< of PCI
    std::vector<std::pair<std::string, std::size_t>> words{}; ///< that a label may hold
};

Index make_index(std::span<const Nic> nics) {
    Index index;
    for (std::size_t i = 0; i < nics.size(); ++i) {
        const auto& nic = nics[i];
        for (const unsigned number : nic.msi_irqs)
            index.numbers[number].push_back(i);
        if (nic.legacy_irq) index.numbers[*nic.legacy_irq].push_back(i);
        for (const auto& queue : nic.queues)
            if (queue.irq) index.numbers[*queue.irq].push_back(i);
        if (nic.device.empty() && !nic.master.empty()) continue; // of a container or guest
        if (!nic.pci.empty()) index.functions[nic.pci].push_back(i);
        for (const auto* word : {&nic.name, &nic.pci, &nic.virtio})
            if (!word->empty()) index.words.emplace_back(*word, i);
        // Lines of SoC devices have the platform device's name, or were asked for before there was a name.
        if (nic.pci.empty() && nic.virtio.empty()) {
            index.words.emplace_back(to_device(nic).platform, i);
            index.words.emplace_back("eth%d", i);
        }
    }
    return index;
}

/// For each interface the lines that may be its own at all, in the table's order: those that its device or
/// netlink names, and those with a handler whose label holds its name, or its device's. A coarse choice, in
/// one go over the table for all interfaces.
std::vector<std::vector<const Irq*>> possible_lines(std::span<const Nic> nics,
                                                    const irq::InterruptTable& table) {
    const auto index = make_index(nics);
    std::vector<std::vector<const Irq*>> lines(nics.size());
    for (const auto& line : table.irqs) {
        const auto add = [&](std::size_t nic) {
            if (lines[nic].empty() || lines[nic].back() != &line) lines[nic].push_back(&line);
        };
        if (const auto found = index.numbers.find(line.number); found != index.numbers.end())
            std::ranges::for_each(found->second, add);
        if (const auto found = index.functions.find(line.pci); found != index.functions.end())
            std::ranges::for_each(found->second, add);
        for (const auto& action : line.actions)
            for (const auto& [word, nic] : index.words)
                if (action.contains(word)) add(nic);
    }
    return lines;
}

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
                                line.action.find(nic.name) != std::string::npos &&
                                line.action != nic.name); // igb's other vector: the kernel shows the new name
    }

    [[nodiscard]] bool in_list(unsigned number) const {
        return std::ranges::binary_search(nic_.msi_irqs, number);
    }

    [[nodiscard]] bool owns(const irq::Line& line) const {
        const auto& label = line.label;
        if (line.known && label.sub_function != nic_.is_sub_function && label.device != nic_.name)
            return false;
        if (in_list(line.irq)) {
            if (label.device.empty() || label.device == nic_.name) return true;
            // A label keeps the name that the interface had when it requested the interrupt. So a renamed
            // interface owns vectors of its old name, unless some vectors of the list have its new one: then
            // the others belong to another interface on the same function.
            return !named_ && !shares_function(nic_);
        }
        if (!label.is_nic) return false;
        const bool has_place = !label.pci.empty() || !label.virtio.empty() || !label.platform.empty();
        if (!nic_.msi_irqs.empty() && !has_place) return false;
        if (!label.pci.empty() && !nic_.pci.empty() && label.pci != nic_.pci)
            return false; // an interface of the same name in another network namespace
        if (label.device == nic_.name) return true;
        if (!label.device.empty()) return false;
        if (!has_place) return !nic_.device.empty() && label.driver == nic_.driver; // "eth%d"
        return (!label.pci.empty() && label.pci == nic_.pci) ||
               (!label.virtio.empty() && label.virtio == nic_.virtio);
    }

  private:
    const Nic& nic_;
    bool named_ = false;
};

Vector from_label(const irq::Line& line, Source source) {
    const auto& label = line.label;
    Vector vector{.irq = line.irq,
                  .kind = label.kind,
                  .queue = label.queue,
                  .label = line.action,
                  .source = source,
                  .shared = line.shared,
                  .known = line.known};
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
    vector.known = true;
}

/// bcmgenet and stmmac give two lines of one device the same name.
void number_equal_labels(std::vector<Vector>& vectors) {
    std::map<std::string_view, unsigned> count;
    for (auto& vector : vectors)
        vector.ordinal = count[vector.label]++;
}

} // namespace

irq::Device to_device(const Nic& nic) {
    irq::Device device{nic.name, nic.driver, nic.pci, nic.virtio, {}, nic.msi_irqs, nic.is_sub_function};
    // SoC drivers name their lines after the platform device, Xen's after "vif-0" without the dash.
    if (nic.pci.empty() && nic.virtio.empty()) device.platform = last_part(nic.device);
    if (device.platform.starts_with("vif-")) device.platform.erase(3, 1);
    return device;
}

IrqMask irq_subject(const Nic& nic, const Vector& vector) {
    const bool is_line = vector.shared || nic.legacy_irq == vector.irq;
    return {nic.device.empty() ? nic.name : nic.device, vector.label, is_line ? 0 : vector.ordinal,
            vector.irq, is_line};
}

std::string_view to_string(Source source) {
    constexpr std::array<std::string_view, 4> names{"netlink", "msi_irqs", "label", "legacy"};
    return names[static_cast<std::size_t>(source)];
}

std::string_view to_string(irq::Kind kind) {
    constexpr std::array<std::string_view, 6> names{"rx", "tx", "txrx", "control", "none", ""};
    return names[static_cast<std::size_t>(kind)];
}

namespace {

/// An interface's vectors among these lines.
std::vector<Vector> vectors_among(const std::vector<const Irq*>& candidates, const Nic& nic,
                                  const irq::InterruptTable& table) {
    const auto linked = linked_queues(nic);
    const auto device = to_device(nic);
    const auto lines = irq::classify(candidates, table, {&device, 1});
    const Owner owner(nic, lines);
    std::map<unsigned, Vector> found;
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
        auto& vector = found.insert_or_assign(line.irq, from_label(line, source)).first->second;
        if (legacy && !line.known && !line.label.is_nic) vector.kind = Kind::data_unknown;
    }
    for (const auto* line : candidates) // vectors that the driver has not requested
        if (line->actions.empty() && (owner.in_list(line->number) || linked.contains(line->number)))
            found.emplace(line->number, Vector{.irq = line->number, .source = Source::msi_irqs});
    std::vector<Vector> vectors;
    std::size_t data = 0;
    for (auto& [number, vector] : found) {
        if (const auto link = linked.find(number); link != linked.end()) apply_netlink(vector, link->second);
        data += is_data(vector.kind) ? 1 : 0;
        vectors.push_back(std::move(vector));
    }
    const bool has_former_names = std::ranges::any_of(vectors, [&](const Vector& vector) {
        return is_data(vector.kind) && vector.label.find(nic.name) == std::string::npos &&
               owner.in_list(vector.irq);
    });
    for (auto& vector : vectors) // the bare name is for control beside others, also of a former name
        if (has_former_names && vector.label == nic.name) vector.kind = Kind::control, vector.queue.reset();
    for (auto& vector : vectors) // the only one carries all
        if (data == 1 && vector.kind == Kind::data_unknown) vector.kind = Kind::txrx;
    number_equal_labels(vectors);
    return vectors;
}

} // namespace

std::vector<std::vector<Vector>> vectors_of_all(std::span<const Nic> nics, const irq::InterruptTable& table) {
    if (!table.labels) { // as it was made by hand
        auto labelled = table;
        labelled.labels = builtin_labels();
        return vectors_of_all(nics, labelled);
    }
    const auto lines = possible_lines(nics, table);
    std::vector<std::vector<Vector>> all;
    std::map<unsigned, const Nic*> first; ///< of a line; null: it is of several devices
    for (std::size_t i = 0; i < nics.size(); ++i) {
        all.push_back(vectors_among(lines[i], nics[i], table));
        if (nics[i].is_representor) continue;
        for (const auto& vector : all.back()) {
            const auto [other, is_new] = first.try_emplace(vector.irq, &nics[i]);
            if (!is_new && other->second != nullptr && other->second->device != nics[i].device)
                other->second = nullptr;
        }
    }
    for (auto& vectors : all)
        for (auto& vector : vectors)
            if (const auto known = first.find(vector.irq); known != first.end() && known->second == nullptr)
                vector.shared = true;
    return all;
}

std::vector<Vector> nic_vectors(const Nic& nic, const irq::InterruptTable& table) {
    return std::move(vectors_of_all({&nic, 1}, table).front());
}

} // namespace affinityd::machine
