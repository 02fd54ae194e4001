// SPDX-License-Identifier: Apache-2.0
#include "state/journal_marks.hpp"

#include "host/boot_clock.hpp"

namespace affinityd::state {

std::string header() {
    const auto& id = host::boot_id();
    return id.empty() ? id : std::string(header_begin) + id + '\n';
}

bool is_of_another_boot(std::string_view text) {
    const auto end = text.find('\n');
    const auto ours = header();
    return !ours.empty() && end != std::string_view::npos && text.starts_with(header_begin) &&
           text.substr(0, end + 1) != ours;
}

} // namespace affinityd::state
