// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

namespace affinityd::planner {

/// Names of interfaces, none twice.
using NicNames = std::vector<std::string>;

/// NIC usage: policy -> interfaces -> tasks that these serve, each of them, counted as tasks are distributed
/// (processes, or threads). No interfaces: tasks of which it is not known which ones serve them. It names
/// the interfaces of `nics: auto`, and says over how many lanes queues are worth spreading and which
/// interfaces must share them.
using NicUsage = std::map<std::string, std::map<NicNames, unsigned>>;

} // namespace affinityd::planner
