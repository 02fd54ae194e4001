// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "measure/comparison.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace affinityctl {

// Figures of experiments as all of them show them.

/// "3.53 (3.41 to 3.66)", of seconds as milliseconds; "-" for no value.
[[nodiscard]] std::string ms_words(const std::optional<affinityd::measure::Interval>& seconds);
/// "+75 % (71 to 79)", "no difference shown", "too few samples".
[[nodiscard]] std::string change_words(const affinityd::measure::Comparison& longer);

/// {"mean", "low", "high"} in milliseconds, or null.
[[nodiscard]] nlohmann::json ms_json(const std::optional<affinityd::measure::Interval>& seconds);
/// {"verdict", "estimate", "low", "high"}, relative; null where nothing could be compared.
[[nodiscard]] nlohmann::json change_json(const affinityd::measure::Comparison& longer);

/// A sentence of a list: with a capital and a full stop.
[[nodiscard]] std::string as_sentence(std::string words);

} // namespace affinityctl
