// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/verbs/verb.hpp"

namespace affinityctl {

/// `measure models`: the four affinity models side by side.
void add_measure_models(CLI::App& measure, Globals& globals, int& status);

} // namespace affinityctl
