// SPDX-License-Identifier: Apache-2.0
#include "state/journal_line.hpp"

#include "base/text.hpp"
#include "host/self.hpp"

#include <charconv>
#include <cstdint>
#include <iterator>
#include <utility>

namespace affinityd::state {

namespace {

constexpr std::string_view header_begin = "of boot ";

/// FNV-1a: finds a torn or mixed-up line; it guards against accidents, not against an attacker (the file is
/// root's).
std::uint32_t checksum(std::string_view text) {
    std::uint32_t sum = 2166136261U;
    for (const char c : text)
        sum = (sum ^ static_cast<unsigned char>(c)) * 16777619U;
    return sum;
}

} // namespace

LineWriter& LineWriter::escaped(std::string_view field) {
    text_ += '\t';
    for (const char c : field) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == '%' || byte == 0x7f)
            fmt::format_to(std::back_inserter(text_), "%{:02x}", byte);
        else
            text_ += c;
    }
    return *this;
}

std::string LineWriter::finish() {
    fmt::format_to(std::back_inserter(text_), "\t{:08x}\n", checksum(text_));
    return std::move(text_);
}

std::string header() {
    const auto& boot = host::boot_id();
    return boot.empty() ? std::string() : LineWriter(std::string(header_begin).append(boot)).finish();
}

bool is_header(std::string_view line) { return line.starts_with(header_begin); }

FileBoot boot_of(std::string_view text) {
    if (text.empty() || host::boot_id().empty() || text.starts_with(header())) return FileBoot::ours;
    const auto fields = fields_of(text.substr(0, text.find('\n')));
    return fields.size() == 1 && is_header(fields[0]) ? FileBoot::another : FileBoot::damaged;
}

std::string unescaped(std::string_view text) {
    std::string result;
    for (std::size_t i = 0; i < text.size(); ++i) {
        unsigned byte = 0;
        if (text[i] == '%' && i + 2 < text.size() &&
            std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ec == std::errc{}) {
            result += static_cast<char>(byte);
            i += 2;
        } else {
            result += text[i];
        }
    }
    return result;
}

std::optional<CpuSet> parse_cpus(std::string_view field) {
    constexpr unsigned greatest = 8191; // of the kernels with most (NR_CPUS, arch/x86/Kconfig)
    auto cpus = CpuSet::parse_list(field);
    if (!cpus || (!cpus->empty() && cpus->last() > greatest)) return std::nullopt;
    return std::move(*cpus);
}

std::vector<std::string_view> fields_of(std::string_view line) {
    const auto last_tab = line.rfind('\t');
    if (last_tab == std::string_view::npos ||
        line.substr(last_tab + 1) != fmt::format("{:08x}", checksum(line.substr(0, last_tab))))
        return {};
    return split(line.substr(0, last_tab), '\t');
}

} // namespace affinityd::state
