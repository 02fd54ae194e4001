// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/verbs/verb.hpp"

namespace affinityctl {

/// `measure latency`: how long a message takes between each two CPUs.
void add_measure_latency(CLI::App& measure, Globals& globals, int& status);

} // namespace affinityctl
