// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace affinityd::experiments {

/// The two kinds of work of the document (Bendersky, "C++11 threads, affinity and hyperthreading"): one that
/// leaves most of a core idle, as each addition waits for the one before, and one that keeps it busy.
enum class Load {
    accum, ///< adds all numbers up
    sine,  ///< adds their sines up
};
inline constexpr std::array loads{Load::accum, Load::sine};
[[nodiscard]] std::string_view name_of(Load load); ///< "accum", "sin": as in the document

/// Does it once over all numbers; the sum.
[[nodiscard]] float work(Load load, std::span<const float> numbers);

/// `count` numbers between 0 and 100, the same ones each time.
[[nodiscard]] std::vector<float> numbers_for_loads(std::size_t count);

} // namespace affinityd::experiments
