// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/verbs/verb.hpp"

namespace affinityctl {

/// `measure sharing`: four threads that write to two cache lines: where they may run, and what that costs.
void add_measure_sharing(CLI::App& measure, Globals& globals, int& status);

} // namespace affinityctl
