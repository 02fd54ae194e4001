// SPDX-License-Identifier: Apache-2.0
#include "experiments/frame/time_words.hpp"

#include <cmath>

namespace affinityd::experiments {

std::string time_words(double seconds) {
    if (!(seconds >= 1)) return "under 1 s";
    if (seconds < 99.5) return std::to_string(std::lround(seconds)) + " s";
    const auto minutes = std::lround(std::fmin(seconds, 1e9) / 60);
    if (minutes < 100) return std::to_string(minutes) + " min";
    const auto rest = minutes % 60;
    return std::to_string(minutes / 60) + " h" + (rest == 0 ? "" : " " + std::to_string(rest) + " min");
}

} // namespace affinityd::experiments
