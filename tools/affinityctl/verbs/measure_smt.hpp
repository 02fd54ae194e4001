// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinityctl/verbs/verb.hpp"

namespace affinityctl {

/// `measure smt`: what two threads of one core cost each other, by kind of load.
void add_measure_smt(CLI::App& measure, Globals& globals, int& status);

} // namespace affinityctl
