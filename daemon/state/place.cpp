// SPDX-License-Identifier: Apache-2.0
#include "state/place.hpp"

#include <fmt/format.h>

namespace affinityd::state {

namespace {

struct Place {
    std::string operator()(const machine::IrqMask& mask) const {
        return mask.device.empty() ? "" : fmt::format("irq\t{}\t{}", mask.device, mask.irq);
    }
    std::string operator()(const machine::SteeringMask& map) const {
        if (!is_virtual(map)) return {};
        const char direction = map.direction == machine::Direction::rx ? 'r' : 't';
        return fmt::format("steering\t#{}\t{}\t{}", map.ifindex, direction, map.queue);
    }
    std::string operator()(const machine::FlowTable& table) const {
        return is_virtual(table) ? fmt::format("flows\t#{}\t{}", table.ifindex, table.queue) : "";
    }
    std::string operator()(const auto&) const { return {}; }
    /// Its name is its identity.
    static bool is_virtual(const auto& queue) {
        return queue.ifindex != 0 && queue.device.find('/') == std::string::npos;
    }
};

} // namespace

std::string place_of(const machine::Subject& subject) { return std::visit(Place{}, subject); }

} // namespace affinityd::state
