// SPDX-License-Identifier: Apache-2.0
#include "irq/gve.hpp"

#include <algorithm>
#include <optional>
#include <span>

namespace affinityd::irq {

namespace {

bool is_block(const NumberedLabel& line) {
    return line.label->kind == Kind::data_unknown && line.label->queue.has_value();
}

/// One interface's blocks by ascending interrupt, and its management vector after them if it is known.
void settle_interface(std::span<const NumberedLabel> lines) {
    std::optional<unsigned> first; ///< interrupt of block 0
    std::optional<unsigned> management;
    unsigned blocks = 0;
    for (const auto& line : lines) {
        if (line.label->kind == Kind::control) management = line.irq;
        if (!is_block(line)) continue;
        blocks = std::max(blocks, *line.label->queue + 1);
        if (!first && line.irq >= *line.label->queue) first = line.irq - *line.label->queue;
    }
    if (first && management && *management > *first && *management - *first >= blocks)
        blocks = *management - *first;
    if (blocks < 2) return; // without a second block the halves are not to be seen
    const unsigned half = (blocks + 1) / 2;
    for (const auto& line : lines) {
        if (!is_block(line)) continue;
        auto& label = *line.label;
        label.kind = *label.queue < half ? Kind::tx : Kind::rx;
        auto& queue = label.kind == Kind::rx ? label.rx_queue : label.tx_queue;
        queue = label.kind == Kind::rx ? *label.queue - half : *label.queue;
    }
}

} // namespace

void settle_gve(std::vector<NumberedLabel> labels) {
    std::ranges::sort(labels, {}, &NumberedLabel::irq);
    auto begin = labels.begin();
    std::optional<unsigned> last; ///< block
    for (auto at = labels.begin(); at != labels.end(); ++at) {
        // Numbers begin anew: the next interface's. The management vector ends an interface, too.
        const bool begins = is_block(*at) && last && *at->label->queue <= *last;
        const bool ends = at != labels.begin() && std::prev(at)->label->kind == Kind::control;
        if (begins || ends) {
            settle_interface({begin, at});
            begin = at;
            last.reset();
        }
        if (is_block(*at)) last = at->label->queue;
    }
    settle_interface({begin, labels.end()});
}

} // namespace affinityd::irq
