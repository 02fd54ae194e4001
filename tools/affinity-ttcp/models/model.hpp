// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "base/model.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace affinityd::ttcp {

/// In the order of reports. run_round() carries a model out.
inline constexpr std::array<Model, 4> all_models{Model::none, Model::irq, Model::process, Model::full};
[[nodiscard]] std::optional<Model> parse_model(std::string_view text);
[[nodiscard]] constexpr bool binds_interrupts(Model model) {
    return model == Model::irq || model == Model::full;
}
[[nodiscard]] constexpr bool binds_processes(Model model) {
    return model == Model::process || model == Model::full;
}

/// The CPU of connection `index` of `count`. Connections with adjacent numbers share one, as in the paper (of
/// 8 on 2 CPUs, 0 to 3 get the first). `cpus` must not be empty.
[[nodiscard]] unsigned cpu_of(unsigned index, unsigned count, const CpuSet& cpus);

/// The order in which so many cells (models, or models at points) run, `rounds` times each: forward, then
/// backward, and so on, so that a steady drift affects all equally. The numbers are positions, since a model
/// may be listed twice (an A/A run).
[[nodiscard]] std::vector<std::size_t> interleave(std::size_t cells, unsigned rounds);

} // namespace affinityd::ttcp
