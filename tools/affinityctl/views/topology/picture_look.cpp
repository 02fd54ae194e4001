// SPDX-License-Identifier: Apache-2.0
#include "affinityctl/views/topology/picture_look.hpp"

#include <array>

#include <fmt/format.h>

namespace affinityctl {

using affinityd::topology::Topology;
using Kind = Part::Kind;

namespace {

/// Most colour-blind people can tell these apart; white figures are readable on each.
constexpr std::array palette{"#2867c6", "#d9601a", "#1d8a5b", "#a83f97", "#b38600",
                             "#12839c", "#c5323f", "#6549c9", "#75573a", "#4f6070"};

} // namespace

const char* color_of(std::size_t tenant) { return palette[tenant % palette.size()]; }

Look look_of(Kind kind) {
    switch (kind) {
    case Kind::drawer:
    case Kind::book:
        return {"#fafbfc", "#a3adba", 12, 1.2};
    case Kind::package:
        return {"#eef1f5", "#77859a", 11, 1.6};
    case Kind::node:
        return {"#e3f0e8", "#6ba585", 9, 1.2};
    case Kind::die:
        return {"#fbf5e6", "#cdae63", 9, 1.2};
    case Kind::cache:
        return {"#e5eefa", "#7fa3d6", 8, 1.2};
    case Kind::cluster:
        return {"#f2f0fa", "#a69cd0", 8, 1.2};
    default:
        return {"#ffffff", "#b4bdca", 5, 1};
    }
}

PillLook look_of(Hanging::Kind kind) {
    switch (kind) {
    case Hanging::Kind::nic:
        return {"#24384f", "#24384f", "#ffffff", "#b9c9dc", 12};
    case Hanging::Kind::memory:
        return {"#f1eafa", "#9a7fc4", "#2a323d", "#66717f", 3};
    case Hanging::Kind::device:
        break;
    }
    return {"#eceff3", "#8a95a4", "#2a323d", "#66717f", 12};
}

std::string id_of(const Topology& topology, const Part& part) {
    switch (part.kind) {
    case Kind::drawer:
        return fmt::format("drawer-{}", part.index);
    case Kind::book:
        return fmt::format("book-{}", part.index);
    case Kind::package:
        return fmt::format("package-{}", part.index);
    case Kind::node:
        return fmt::format("node-{}", topology.nodes[part.index].id);
    case Kind::die:
        return fmt::format("die-{}", part.index);
    case Kind::cluster:
        return fmt::format("cluster-{}", part.index);
    case Kind::cache:
        return fmt::format("cache-{}", part.index);
    case Kind::core:
        return fmt::format("core-{}", part.index);
    case Kind::cpu:
        return fmt::format("cpu-{}", topology.cpus[part.index].id);
    case Kind::machine:
        break;
    }
    return "machine";
}

} // namespace affinityctl
