// SPDX-License-Identifier: Apache-2.0
#include "inventory/known_files.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace affinityd::inventory {

KnownFiles::Fresh KnownFiles::see(std::span<const PolledFile> polled, std::size_t most) {
    Fresh fresh;
    std::vector<std::uint32_t> inodes;
    inodes.reserve(polled.size());
    for (const auto& file : polled)
        inodes.push_back(static_cast<std::uint32_t>(file.inode));
    std::ranges::sort(inodes); // files of other kinds may have larger numbers
    const auto rest = std::ranges::unique(inodes);
    inodes.erase(rest.begin(), rest.end());
    const std::size_t count = inodes.size();
    if (are_known_) {
        std::ranges::set_difference(inodes, inodes_, std::back_inserter(fresh.inodes));
        fresh.count = fresh.inodes.size();
        fresh.stayed.emplace();
        std::ranges::set_intersection(inodes, inodes_, std::back_inserter(*fresh.stayed));
    } else if (!is_first_) {
        fresh.count = count - std::min(count, count_);
    } else {
        fresh.stayed.emplace();
    }
    are_known_ = count <= most;
    if (!are_known_) inodes.clear();
    inodes.shrink_to_fit();
    inodes_ = std::move(inodes);
    count_ = count;
    is_first_ = false;
    return fresh;
}

} // namespace affinityd::inventory
