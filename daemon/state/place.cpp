// SPDX-License-Identifier: Apache-2.0
#include "state/place.hpp"

#include <fmt/format.h>

namespace affinityd::state {

namespace {

bool is_virtual(const auto& queue) { return queue.device.find('/') == std::string::npos; }

struct Place {
    std::string operator()(const machine::IrqMask& mask) const {
        return mask.device.empty() ? "" : fmt::format("irq\t{}\t{}", mask.device, mask.irq);
    }
    std::string operator()(const machine::SteeringMask& map) const {
        const char direction = map.direction == machine::Direction::rx ? 'r' : 't';
        return map.ifindex == 0
                   ? ""
                   : fmt::format("steering\t{}#{}\t{}\t{}", path_of(map), map.ifindex, direction, map.queue);
    }
    std::string operator()(const machine::FlowTable& table) const {
        return table.ifindex == 0
                   ? ""
                   : fmt::format("flows\t{}#{}\t{}", path_of(table), table.ifindex, table.queue);
    }
    std::string operator()(const auto&) const { return {}; }
    /// "" of a virtual interface: there, it is the name.
    static std::string path_of(const auto& queue) { return is_virtual(queue) ? "" : queue.device; }
};

struct Folder {
    std::string operator()(const machine::SteeringMask& map) const {
        const char direction = map.direction == machine::Direction::rx ? 'r' : 't';
        return is_known(map) ? fmt::format("steering\t@{}\t{}\t{}", map.folder, direction, map.queue) : "";
    }
    std::string operator()(const machine::FlowTable& table) const {
        return is_known(table) ? fmt::format("flows\t@{}\t{}", table.folder, table.queue) : "";
    }
    std::string operator()(const auto&) const { return {}; }
    /// Of a device with one interface, the device's path says enough.
    static bool is_known(const auto& queue) {
        return queue.folder != 0 && (is_virtual(queue) || queue.is_port);
    }
};

} // namespace

std::string place_of(const machine::Subject& subject) { return std::visit(Place{}, subject); }

std::string folder_of(const machine::Subject& subject) { return std::visit(Folder{}, subject); }

bool has_only_name(const machine::Subject& subject) {
    return std::visit(
        [](const auto& what) {
            if constexpr (requires { what.ifindex; }) return what.ifindex != 0 && is_virtual(what);
            return false;
        },
        subject);
}

} // namespace affinityd::state
