// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "affinity-ttcp/engine/stream.hpp"
#include "measure/result.hpp"

#include <string>

namespace affinityd::ttcp {

/// The outcome that an errno value, or the end of a stream, means for a whole run.
[[nodiscard]] measure::Outcome outcome_of(int code);
[[nodiscard]] measure::Outcome outcome_of(End end);

/// For a person: how far a stream came and why it ended. `use.end` is not End::whole.
[[nodiscard]] std::string broken_stream(const StreamUse& use);

/// Records a fault. Only the first one counts: later ones mostly follow from it.
void note(measure::Report& report, measure::Outcome outcome, const std::string& reason);

} // namespace affinityd::ttcp
