// SPDX-License-Identifier: Apache-2.0
#include "host/subordinate_ids.hpp"

#include "base/text.hpp"
#include "host/file.hpp"

#include <algorithm>
#include <iterator>

namespace affinityd::host {

/// Lines "name:first:count"; others are passed over.
void SubordinateIds::parse(std::string_view text) {
    ranges_.clear();
    for (const auto line : split(text, '\n')) {
        const auto fields = split(line, ':');
        if (fields.size() != 3) continue;
        const auto first = parse_number<uid_t>(fields[1]);
        const auto count = parse_number<std::uint32_t>(fields[2]);
        if (first && count && *first > 0 && *count > 0) ranges_.push_back({*first, *count});
    }
    std::ranges::sort(ranges_, {}, &Range::first);
}

void SubordinateIds::refresh() {
    constexpr std::chrono::seconds between_reads{10};
    constexpr std::size_t largest = 1U << 20;
    const auto now = std::chrono::steady_clock::now();
    if (now < next_read_) return;
    next_read_ = now + between_reads;
    const auto text = read_file(path_, largest);
    parse(text && *text ? **text : "");
}

uid_t SubordinateIds::person(uid_t user) {
    if (user == 0) return user;
    refresh();
    const auto after = std::ranges::upper_bound(ranges_, user, {}, &Range::first);
    if (after == ranges_.begin()) return user;
    const auto& range = *std::prev(after);
    return user - range.first < range.count ? range.first : user;
}

} // namespace affinityd::host
