// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/models/model.hpp"

#include <algorithm>

namespace affinityd::ttcp {

std::optional<Model> parse_model(std::string_view text) {
    for (const Model model : all_models)
        if (to_string(model) == text) return model;
    return std::nullopt;
}

unsigned cpu_of(unsigned index, unsigned count, const CpuSet& cpus) {
    const auto list = cpus.to_vector();
    return list[static_cast<std::size_t>(index) * list.size() / std::max(count, index + 1)];
}

std::vector<std::size_t> interleave(std::size_t cells, unsigned rounds) {
    std::vector<std::size_t> order;
    for (unsigned round = 0; round < rounds; ++round)
        for (std::size_t i = 0; i < cells; ++i)
            order.push_back(round % 2 == 0 ? i : cells - 1 - i);
    return order;
}

} // namespace affinityd::ttcp
