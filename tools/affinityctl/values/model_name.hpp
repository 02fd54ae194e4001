// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/policy.hpp"

#include <array>

namespace affinityctl {

/// As policies write it.
[[nodiscard]] inline const char* model_name(affinityd::policy::Model model) {
    constexpr std::array names{"none", "irq", "process", "full"};
    return names[static_cast<std::size_t>(model)];
}

} // namespace affinityctl
