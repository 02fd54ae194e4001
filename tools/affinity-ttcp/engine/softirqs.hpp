// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace affinityd::ttcp {

/// How often each kind of softirq ran since boot, over all CPUs.
using SoftirqCounts = std::vector<std::pair<std::string, std::uint64_t>>;

/// The text of /proc/softirqs; lines that fit not its form are passed over.
[[nodiscard]] SoftirqCounts parse_softirqs(std::string_view text);

} // namespace affinityd::ttcp
