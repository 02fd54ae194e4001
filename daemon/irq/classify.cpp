// SPDX-License-Identifier: Apache-2.0
#include "irq/classify.hpp"

#include "irq/gve.hpp"
#include "irq/label.hpp"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>

namespace affinityd::irq {

namespace {

using Claim = LabelPattern::Claim;

struct Draft {
    Line line;
    const LabelPattern* pattern = nullptr;
};

bool is_data(Kind kind) {
    return kind == Kind::rx || kind == Kind::tx || kind == Kind::txrx || kind == Kind::data_unknown;
}
bool is_bare(const Draft& draft) { return draft.pattern != nullptr && draft.pattern->pattern == "{nic}"; }
bool is_plain_number(const Draft& draft) {
    return draft.pattern != nullptr && draft.pattern->pattern == "{nic}-{q}";
}

std::vector<Draft> draft_lines(std::span<const Irq* const> lines, const std::vector<std::string>& names) {
    std::vector<Draft> drafts;
    for (const Irq* irq : lines) {
        const auto first = drafts.size();
        for (const auto& action : irq->actions) {
            const auto seen =
                std::ranges::any_of(drafts.begin() + static_cast<std::ptrdiff_t>(first), drafts.end(),
                                    [&](const Draft& draft) { return draft.line.action == action; });
            if (seen) continue; // "eth0, eth0": a wake-up handler beside the real one
            Draft draft{{irq->number, action, {}, irq->actions.size() > 1}, nullptr};
            if (auto match = match_label(action, names)) {
                draft.pattern = match->pattern;
                draft.line.label = std::move(match->label);
            }
            if (draft.line.label.pci.empty() && draft.line.label.is_nic) draft.line.label.pci = irq->pci;
            drafts.push_back(std::move(draft));
        }
        // The same name twice is no sharing.
        if (drafts.size() == first + 1) drafts.back().line.shared = false;
    }
    return drafts;
}

/// ice, i40e and iavf ask for the control vector first and for the queues' next: consecutive numbers belong
/// to one function.
void inherit_function(std::vector<Draft>& drafts) {
    std::vector<Draft*> order;
    for (auto& draft : drafts)
        order.push_back(&draft);
    std::ranges::stable_sort(order, {}, [](const Draft* draft) { return draft->line.irq; });
    const Draft* before = nullptr;
    for (auto* draft : order) {
        auto& label = draft->line.label;
        const bool follows = before != nullptr && before->line.irq + 1 == draft->line.irq &&
                             !label.driver.empty() && before->line.label.driver == label.driver;
        if (follows && label.pci.empty() && !label.device.empty()) label.pci = before->line.label.pci;
        before = draft;
    }
}

/// Fills in the interface's name where the device tree knows what the label only gives as PCI or virtio name.
void apply_known(std::vector<Draft>& drafts, std::span<const Device> known) {
    for (auto& [line, pattern] : drafts) {
        auto& label = line.label;
        const Device* owner = nullptr;
        unsigned owners = 0;
        for (const auto& device : known) {
            const bool named = !label.device.empty() && label.device == device.name;
            const bool by_name = (!label.virtio.empty() && label.virtio == device.virtio) ||
                                 (!label.pci.empty() && label.pci == device.pci) ||
                                 (!label.platform.empty() && label.platform == device.platform);
            const bool by_number =
                label.device.empty() && pattern != nullptr && std::ranges::count(device.irqs, line.irq) > 0;
            if (!named && !by_name && !by_number) continue;
            if (named || owner == nullptr) owner = &device;
            ++owners;
            if (named) {
                owners = 1;
                break;
            }
        }
        if (owner == nullptr) continue;
        if (!label.is_nic && pattern != nullptr) { // virtio: the device tree says that it is a NIC
            label.is_nic = true;
            label.kind = pattern->kind;
        }
        if (label.device.empty() && owners == 1) label.device = owner->name;
        if (!owner->driver.empty()) label.driver = owner->driver;
    }
}

/// virtioN-config is a NIC's line if virtioN has a NIC's queues.
void claim_virtio(std::vector<Draft>& drafts) {
    std::set<std::string, std::less<>> nics;
    for (const auto& draft : drafts)
        if (draft.line.label.is_nic && !draft.line.label.virtio.empty()) nics.insert(draft.line.label.virtio);
    for (auto& [line, pattern] : drafts) {
        if (pattern == nullptr || pattern->claim != Claim::if_nic || line.label.is_nic) continue;
        if (nics.contains(line.label.virtio)) {
            line.label.is_nic = true;
            line.label.kind = pattern->kind;
        } else {
            line.label.driver.clear();
        }
    }
}

/// All lines of one interface (or of one device, where the label holds no interface), to be seen together.
using Group = std::vector<Draft*>;

/// Of a bare name and queue vectors beside it, the bare one is link, mailbox or "other".
void settle_bare(const Group& group) {
    const bool has_queues = std::ranges::any_of(group, [](const Draft* draft) {
        return !is_bare(*draft) && is_data(draft->line.label.kind) && draft->pattern != nullptr;
    });
    if (!has_queues) return;
    for (auto* draft : group)
        if (is_bare(*draft)) draft->line.label.kind = Kind::control;
}

/// "eth0:mac" is the only line of a stmmac without queue vectors.
void settle_stmmac(const Group& group) {
    if (std::ranges::any_of(group, [](const Draft* draft) { return is_data(draft->line.label.kind); }))
        return;
    for (auto* draft : group)
        if (draft->pattern != nullptr && draft->pattern->pattern == "{if}:mac")
            draft->line.label.kind = Kind::txrx;
}

/// tg3: vector 0 is transmit ring 0 and the link; receive rings are numbered from vector 1, the kernel's
/// queues from 0.
void settle_tg3(const Group& group) {
    const auto& driver = group.front()->line.label.driver;
    unsigned receive = 0;
    unsigned transmit = 0;
    unsigned lowest = 0xffff;
    bool other = false;
    for (const auto* draft : group) {
        const auto& label = draft->line.label;
        const bool rx = label.kind == Kind::rx && label.queue;
        const bool both = label.kind == Kind::txrx && label.queue && !is_plain_number(*draft);
        if (rx || both) {
            ++receive;
            lowest = std::min(lowest, *label.queue);
        } else if (label.kind == Kind::tx) {
            ++transmit;
        } else if (!(is_plain_number(*draft) && label.queue == 0U)) {
            other = true;
        }
    }
    // Without the driver's name: rx-1, rx-2 ... with no rx-0, and one line beside them.
    const bool looks_so =
        !other && driver.empty() && receive > 0 && lowest == 1 && receive + 1 == group.size();
    if (driver != "tg3" && !looks_so) return;
    for (auto* draft : group) {
        auto& label = draft->line.label;
        label.driver = "tg3";
        if (is_plain_number(*draft)) {
            label.kind = Kind::control;
            label.queue.reset();
        } else if (label.queue && *label.queue > 0 && label.kind == Kind::rx) {
            label.rx_queue = *label.queue - 1;
        } else if (label.queue && *label.queue > 0 && (label.kind == Kind::txrx || label.kind == Kind::tx)) {
            label.tx_queue = *label.queue - 1;
            if (label.kind == Kind::txrx) label.rx_queue = label.tx_queue;
        }
    }
}

/// "eth0-7" is a queue pair for bnx2, mlx4 and sfc, which never take more than one (and one) for each CPU;
/// r8125 numbers up to 32 vectors and the meaning of each is not in the label.
void settle_plain_numbers(const Group& group, std::size_t cpu_count) {
    const auto plain = static_cast<std::size_t>(
        std::ranges::count_if(group, [](const Draft* draft) { return is_plain_number(*draft); }));
    const bool unknown =
        group.front()->line.label.driver == "r8125" || (cpu_count > 0 && plain > cpu_count + 1);
    if (!unknown) return;
    for (auto* draft : group)
        if (is_plain_number(*draft)) draft->line.label.kind = Kind::data_unknown;
}

/// The pattern decides, not the driver's name in the device tree: gve calls itself "gvnic" in older kernels.
bool is_of(const Group& group, std::string_view driver) {
    return std::ranges::all_of(group, [&](const Draft* draft) {
        return draft->pattern != nullptr && draft->pattern->driver == driver;
    });
}

std::vector<NumberedLabel> labels_of(const Group& group) {
    std::vector<NumberedLabel> labels;
    for (auto* draft : group)
        labels.push_back({draft->line.irq, &draft->line.label});
    return labels;
}

std::vector<Line> settle(std::vector<Draft> drafts, std::span<const Device> known, std::size_t cpu_count) {
    inherit_function(drafts);
    apply_known(drafts, known);
    claim_virtio(drafts);
    std::map<std::vector<std::string>, Group> groups;
    for (auto& draft : drafts) {
        const auto& label = draft.line.label;
        if (!label.is_nic) continue;
        auto key = label.device.empty()
                       ? std::vector{std::string(), label.pci, label.virtio, label.platform, label.driver}
                       : std::vector{label.device};
        groups[std::move(key)].push_back(&draft);
    }
    for (const auto& group : groups | std::views::values) {
        settle_bare(group);
        settle_stmmac(group);
        settle_tg3(group);
        if (is_of(group, "gve")) settle_gve(labels_of(group));
        settle_plain_numbers(group, cpu_count);
    }
    std::vector<Line> lines;
    lines.reserve(drafts.size());
    for (auto& draft : drafts)
        lines.push_back(std::move(draft.line));
    return lines;
}

} // namespace

std::vector<Line> classify(std::span<const Irq* const> lines, std::span<const Device> known,
                           std::size_t cpu_count) {
    std::vector<std::string> names;
    for (const auto& device : known)
        names.push_back(device.name);
    return settle(draft_lines(lines, names), known, cpu_count);
}

std::vector<Line> classify(const InterruptTable& table, std::span<const Device> known) {
    std::vector<const Irq*> lines;
    lines.reserve(table.irqs.size());
    for (const auto& line : table.irqs)
        lines.push_back(&line);
    return classify(lines, known, table.cpus.size());
}

} // namespace affinityd::irq
