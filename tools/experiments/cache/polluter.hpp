// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "experiments/cache/places.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace affinityd::host {
class Root;
}

namespace affinityd::experiments {

/// Who fills the caches, so that nothing of a working set is left there: how much memory it reads, and why it
/// is no more.
struct Polluter {
    std::uint64_t bytes = 0;
    std::uint64_t enough = 0;                    ///< that empties the last level
    std::optional<std::uint64_t> available = {}; ///< memory that could be had; no value: it is not known
    [[nodiscard]] bool is_enough() const { return bytes >= enough; }
};
inline constexpr std::uint64_t most_polluter = std::uint64_t{1} << 30U;

/// Eight times the last level where that much can be had: no more than half of the memory that is available,
/// and most_polluter, but so much in any case that it fills what the core has for itself.
[[nodiscard]] Polluter polluter_for(const CacheSizes& sizes, std::optional<std::uint64_t> available);

/// Takes out of `footprints` the working sets for which the polluter leaves no room, so that the kernel ends
/// nobody for lack of memory; those that were taken out.
[[nodiscard]] std::vector<std::uint64_t> take_out_too_large(std::vector<std::uint64_t>& footprints,
                                                            const Polluter& polluter);
/// "there is no memory for working sets of ...": of what was taken out; "" of nothing.
[[nodiscard]] std::string words_for_too_large(std::span<const std::uint64_t> footprints,
                                              const Polluter& polluter);

/// Bytes that this program can take without pushing others out of memory: what the kernel takes for available
/// (MemAvailable), or less where a control group of this program, or one above it, leaves less. No value: the
/// machine does not say. Sources: proc_meminfo(5), Documentation/admin-guide/cgroup-v2.rst and
/// cgroup-v1/memory.rst.
[[nodiscard]] std::optional<std::uint64_t> available_memory(const host::Root& root);

/// "the polluter has 64 MiB, and ...": what that means for the figures; "" where it is enough.
[[nodiscard]] std::string remark_of(const Polluter& polluter);

} // namespace affinityd::experiments
