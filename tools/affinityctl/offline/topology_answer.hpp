// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/document.hpp"
#include "topology/topology.hpp"

namespace affinityctl {

/// The value of `topology --json`. front.cpp prints it, too, so this needs no library that is loaded later.
extern const Fields topology_answer;
[[nodiscard]] nlohmann::json topology_json(const affinityd::topology::Topology& topology);

} // namespace affinityctl
