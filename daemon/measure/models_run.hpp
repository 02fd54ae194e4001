// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/models_round.hpp"

#include <functional>
#include <vector>

namespace affinityd::measure {

struct ModelsSetup {
    std::vector<Model> models{all_models.begin(),
                              all_models.end()}; ///< the first is what the others are compared with
    unsigned rounds = 10;                        ///< of each model
    RoundSetup round;
    std::function<void(std::size_t done, std::size_t all)> progress; ///< after each round; may be empty
};

/// The whole experiment on a bed: a short run that does not count, then rounds in interleaved order. The
/// samples of whole rounds before a fault are in the report.
[[nodiscard]] ModelsReport run_models(const host::Root& root, const Bed& bed, const ModelsSetup& setup);

} // namespace affinityd::measure
