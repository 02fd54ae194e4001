// SPDX-License-Identifier: Apache-2.0
#include "state/journal_marks.hpp"

#include "host/boot_clock.hpp"
#include "state/journal_line.hpp"

namespace affinityd::state {

std::string header_of(std::string_view boot_id) {
    return LineWriter(std::string(header_begin).append(boot_id)).finish();
}

std::string header() { return host::boot_id().empty() ? std::string() : header_of(host::boot_id()); }

FileBoot boot_of(std::string_view text) {
    if (text.empty() || host::boot_id().empty() || text.starts_with(header())) return FileBoot::ours;
    const auto fields = fields_of(text.substr(0, text.find('\n')));
    const bool is_header = fields.size() == 1 && fields[0].starts_with(header_begin);
    return is_header ? FileBoot::another : FileBoot::damaged;
}

bool is_header_line(std::string_view line) { return line.starts_with(header_begin); }

Error header_damage(const std::string& path) {
    return {"its first line, which names the boot, is damaged: the lines after it were used", path};
}

} // namespace affinityd::state
