// SPDX-License-Identifier: Apache-2.0
#include "topology/numbered.hpp"

#include "base/text.hpp"
#include "host/root.hpp"

#include <algorithm>

namespace affinityd::topology {

Result<std::vector<unsigned>> numbered(const host::Dir& dir, std::string_view prefix) {
    std::vector<unsigned> numbers;
    const auto names = dir.list("");
    if (!names) return std::unexpected(names.error());
    for (const auto& name : *names) {
        if (!name.starts_with(prefix)) continue;
        const auto number = parse_number<unsigned>(std::string_view(name).substr(prefix.size()));
        // No kernel makes "cpu007"; it would be a second cpu7.
        if (number && *number <= greatest_number && name == std::string(prefix) + std::to_string(*number))
            numbers.push_back(*number);
    }
    std::ranges::sort(numbers);
    return numbers;
}

} // namespace affinityd::topology
