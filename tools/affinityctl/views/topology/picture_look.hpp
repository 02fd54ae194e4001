// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/views/topology/machine_view.hpp"

#include <string>

namespace affinityctl {

/// How each kind of box is drawn.
struct Look {
    const char* fill;
    const char* stroke;
    double radius, line;
};
[[nodiscard]] Look look_of(Part::Kind kind);

/// How what hangs below a box is drawn.
struct PillLook {
    const char *fill, *stroke, *ink, *faint;
    double radius;
};
[[nodiscard]] PillLook look_of(Hanging::Kind kind);

/// The colour of a policy by its place among the tenants.
[[nodiscard]] const char* color_of(std::size_t tenant);

/// The id of a part's element: "llc-0", "cpu-17".
[[nodiscard]] std::string id_of(const affinityd::topology::Topology& topology, const Part& part);

} // namespace affinityctl
