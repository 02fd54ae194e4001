// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/present/document.hpp"
#include "topology/topology.hpp"

namespace affinityctl {

/// The value of `topology --json`. It needs no library that is not linked in: front.cpp prints it, too.
extern const Fields topology_answer;
[[nodiscard]] nlohmann::json topology_json(const affinityd::topology::Topology& topology);

} // namespace affinityctl
