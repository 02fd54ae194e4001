// SPDX-License-Identifier: Apache-2.0
#include "irq/classify.hpp"

#include "irq/labels.hpp"

#include <algorithm>
#include <map>
#include <ranges>
#include <set>

namespace affinityd::irq {

namespace {

struct Draft {
    Line line;
    const LabelPattern* pattern = nullptr;
};

bool has(const std::vector<std::string>& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
}

bool lists(const Device& device, const Draft& draft) {
    return std::ranges::binary_search(device.irqs, draft.line.irq);
}

void take(Draft& draft, LabelMatch match) {
    draft.pattern = match.pattern;
    draft.line.label = std::move(match.label);
    draft.line.label.sub_function = match.pattern->sub_function;
    draft.line.known = true;
    if (draft.line.label.device == "eth%d") draft.line.label.device.clear(); // it had no name yet
}

std::vector<Draft> draft_lines(std::span<const Irq* const> lines, const LabelTable& table,
                               const std::vector<std::string>& names) {
    std::vector<Draft> drafts;
    for (const Irq* irq : lines) {
        const auto first = drafts.size();
        for (const auto& action : irq->actions) {
            const auto seen =
                std::ranges::any_of(drafts.begin() + static_cast<std::ptrdiff_t>(first), drafts.end(),
                                    [&](const Draft& draft) { return draft.line.action == action; });
            if (seen) continue; // "eth0, eth0": a wake-up handler beside the real one
            Draft draft{{irq->number, action, {}, irq->actions.size() > 1}, nullptr};
            if (auto match = table.match(action, names)) take(draft, std::move(*match));
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

/// The interface that a line belongs to by the device tree; null: none. `is_only`: it has no other either.
const Device* find_owner(const Draft& draft, std::span<const Device> known, bool& is_only) {
    const auto& label = draft.line.label;
    const Device* owner = nullptr;
    unsigned owners = 0;
    for (const auto& device : known) {
        if (!label.device.empty() && (label.device == device.name || label.device == device.platform)) {
            is_only = true;
            return &device;
        }
        if (draft.pattern != nullptr && label.sub_function != device.sub_function) continue;
        const bool by_name = (!label.virtio.empty() && label.virtio == device.virtio) ||
                             (!label.pci.empty() && label.pci == device.pci) ||
                             (!label.platform.empty() && label.platform == device.platform);
        if (!by_name && !lists(device, draft)) continue;
        if (owner == nullptr) owner = &device;
        ++owners;
    }
    is_only = owners == 1;
    return owner;
}

/// Adds what the device tree knows: the interface's name where the label only has the device's, the driver,
/// and with it the forms that are this driver's only.
void apply_known(std::vector<Draft>& drafts, std::span<const Device> known, const LabelTable& table,
                 const std::vector<std::string>& names) {
    for (auto& draft : drafts) {
        bool is_only = false;
        const auto* owner = find_owner(draft, known, is_only);
        if (owner == nullptr) continue;
        const bool is_unknown = draft.pattern == nullptr;
        const auto is_own = [&](const LabelPattern& form) {
            return form.only && form.driver == owner->driver;
        };
        const auto fits = [&](const LabelMatch& match) {
            return match.pattern->only ||
                   (is_unknown && (match.pattern->driver == owner->driver || has(names, match.label.device)));
        };
        if (!owner->driver.empty() && (is_unknown || std::ranges::any_of(table.patterns(), is_own)))
            if (auto match = table.match(draft.line.action, names, owner->driver, is_unknown);
                match && fits(*match)) {
                auto pci = std::move(draft.line.label.pci);
                take(draft, std::move(*match));
                if (draft.line.label.pci.empty()) draft.line.label.pci = std::move(pci);
            }
        auto& label = draft.line.label;
        if (!label.is_nic) { // virtio: the device tree says that it is a NIC; or a label that no form fits
            label.is_nic = true;
            label.kind = draft.pattern == nullptr ? Kind::data_unknown : draft.pattern->kind;
        }
        if (is_only && (label.device.empty() || label.device == owner->platform)) label.device = owner->name;
        if (!owner->driver.empty()) label.driver = owner->driver;
    }
}

/// virtioN-config is a NIC's line if virtioN has a NIC's queues.
void claim_virtio(std::vector<Draft>& drafts) {
    std::set<std::string, std::less<>> nics;
    for (const auto& draft : drafts)
        if (draft.line.label.is_nic && !draft.line.label.virtio.empty()) nics.insert(draft.line.label.virtio);
    for (auto& [line, pattern] : drafts) {
        if (pattern == nullptr || pattern->is_sure || line.label.is_nic) continue;
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

/// A line that may be the only one of its device is a control line beside others, or is for both directions
/// without them.
void settle_alone(const Group& group) {
    std::set<const LabelPattern*> forms;
    for (const auto* draft : group)
        if (draft->pattern != nullptr && draft->pattern->alone) forms.insert(draft->pattern);
    for (const auto* form : forms) {
        const bool has_others = std::ranges::any_of(group, [&](const Draft* draft) {
            return draft->pattern != form && is_data(draft->line.label.kind);
        });
        for (auto* draft : group)
            if (draft->pattern == form && !has_others) draft->line.label.kind = *form->alone;
    }
}

/// Labels of drivers that do not number queues from 0. Without the driver's name: rx-1, rx-2 ... with no
/// rx-0, and one line beside them.
void settle_first(const Group& group) {
    unsigned receive = 0, lowest = 0xffff;
    for (const auto* draft : group)
        if (const auto& label = draft->line.label; label.kind == Kind::rx && label.queue) {
            ++receive;
            lowest = std::min(lowest, *label.queue);
        }
    const bool looks_so =
        group.front()->line.label.driver.empty() && lowest == 1 && receive + 1 == group.size();
    for (auto* draft : group) {
        auto& label = draft->line.label;
        const unsigned first = draft->pattern == nullptr ? 0 : draft->pattern->first;
        const unsigned shift = first == 0 && looks_so && label.kind == Kind::rx ? 1 : first;
        if (!label.queue || shift == 0) continue;
        const unsigned queue = *label.queue - std::min(*label.queue, shift);
        if (label.kind != Kind::tx) label.rx_queue = queue;
        if (label.kind != Kind::rx) label.tx_queue = queue;
    }
}

/// "eth0-7" is a queue pair for bnx2, mlx4 and sfc, which never take more than one (and one) for each CPU.
void settle_plain_numbers(const Group& group, std::size_t cpu_count) {
    const auto is_plain = [](const Draft* draft) {
        return draft->pattern != nullptr && draft->pattern->label == "{NIC}-{N}";
    };
    if (cpu_count == 0 || std::ranges::count_if(group, is_plain) <= std::ptrdiff_t(cpu_count) + 1) return;
    for (auto* draft : group)
        if (is_plain(draft)) draft->line.label.kind = Kind::data_unknown;
}

bool is_block(const Draft* draft) {
    return draft->pattern != nullptr && draft->pattern->is_halves && draft->line.label.queue.has_value();
}

/// An interface's blocks by ascending interrupt, and the control vector after them if it is known: with N
/// blocks the lower half serves the transmit queues 0 .. N/2-1, the upper half the receive queues from 0 on.
/// N is even; the control vector follows the blocks and so says N even where some are missing.
void settle_halves(std::span<Draft* const> lines) {
    std::optional<unsigned> first; ///< interrupt of block 0
    std::optional<unsigned> control;
    unsigned blocks = 0;
    for (const auto* draft : lines) {
        if (draft->line.label.kind == Kind::control) control = draft->line.irq;
        if (!is_block(draft)) continue;
        const auto number = *draft->line.label.queue;
        blocks = std::max(blocks, number + 1);
        if (!first && draft->line.irq >= number) first = draft->line.irq - number;
    }
    if (first && control && *control > *first && *control - *first >= blocks) blocks = *control - *first;
    if (blocks < 2) return; // without a second block the halves are not to be seen
    const unsigned half = (blocks + 1) / 2;
    for (auto* draft : lines) {
        if (!is_block(draft)) continue;
        auto& label = draft->line.label;
        label.kind = *label.queue < half ? Kind::tx : Kind::rx;
        auto& queue = label.kind == Kind::rx ? label.rx_queue : label.tx_queue;
        queue = label.kind == Kind::rx ? *label.queue - half : *label.queue;
    }
}

/// Old labels of gve do not tell interfaces apart: where numbers begin anew, or after a control vector, the
/// next interface's do.
void settle_halves_of_all(Group group) {
    std::ranges::sort(group, {}, [](const Draft* draft) { return draft->line.irq; });
    const std::span<Draft* const> lines(group);
    std::size_t begin = 0;
    std::optional<unsigned> last; ///< block
    for (std::size_t at = 0; at < lines.size(); ++at) {
        const bool begins = is_block(lines[at]) && last && *lines[at]->line.label.queue <= *last;
        const bool ends = at > 0 && lines[at - 1]->line.label.kind == Kind::control;
        if (begins || ends) {
            settle_halves(lines.subspan(begin, at - begin));
            begin = at;
            last.reset();
        }
        if (is_block(lines[at])) last = lines[at]->line.label.queue;
    }
    settle_halves(lines.subspan(begin));
}

} // namespace

std::vector<Line> classify(std::span<const Irq* const> irqs, const InterruptTable& table,
                           std::span<const Device> known) {
    static const LabelTable no_labels({});
    const auto& labels = table.labels ? *table.labels : no_labels;
    std::vector<std::string> names;
    for (const auto& device : known) {
        names.push_back(device.name);
        if (!device.platform.empty()) names.push_back(device.platform);
    }
    auto drafts = draft_lines(irqs, labels, names);
    // An interface that was renamed has labels with its former name.
    for (const auto& device : known)
        for (const auto& draft : drafts)
            if (const auto& name = draft.line.label.device;
                !name.empty() && lists(device, draft) && !has(names, name))
                names.push_back(name);
    inherit_function(drafts);
    apply_known(drafts, known, labels, names);
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
        settle_alone(group);
        settle_first(group);
        settle_plain_numbers(group, table.cpus.size());
        if (std::ranges::any_of(group, is_block)) settle_halves_of_all(group);
    }
    std::vector<Line> lines;
    lines.reserve(drafts.size());
    for (auto& draft : drafts)
        lines.push_back(std::move(draft.line));
    return lines;
}

std::vector<Line> classify(const InterruptTable& table, std::span<const Device> known) {
    std::vector<const Irq*> lines;
    lines.reserve(table.irqs.size());
    for (const auto& line : table.irqs)
        lines.push_back(&line);
    return classify(lines, table, known);
}

} // namespace affinityd::irq
