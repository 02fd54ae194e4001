// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/verbs/verb.hpp"

namespace affinityctl {

/// `measure cache`: what it costs a task to lose its cache, by working set and where it goes on.
void add_measure_cache(CLI::App& measure, Globals& globals, int& status);

} // namespace affinityctl
