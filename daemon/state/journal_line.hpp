// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace affinityd::state {

/// Builds a line of fields, each with a tab before it.
class LineWriter {
  public:
    explicit LineWriter(std::string_view kind) {
        text_.reserve(usual_length);
        text_ += kind;
    }
    LineWriter& plain(std::string_view field) {
        text_ += '\t';
        text_ += field;
        return *this;
    }
    LineWriter& number(std::integral auto field) {
        const fmt::format_int digits(field);
        return plain({digits.data(), digits.size()});
    }
    /// Tabs, line ends and other control bytes as %XX, and the percent sign itself.
    LineWriter& escaped(std::string_view field);
    [[nodiscard]] const std::string& text() const { return text_; } ///< so far
    /// With a checksum and the line end.
    [[nodiscard]] std::string finish();

  private:
    static constexpr std::size_t usual_length = 160;
    std::string text_;
};

/// What escaped() was given.
[[nodiscard]] std::string unescaped(std::string_view text);

/// No value: it is no list of CPUs, or names one that no kernel has. A set takes memory up to its last one.
[[nodiscard]] std::optional<CpuSet> parse_cpus(std::string_view field);

/// The fields of a line without its end; empty if it is torn or mixed up.
[[nodiscard]] std::vector<std::string_view> fields_of(std::string_view line);

/// Each file of this room begins with a line that names the boot: a change before the machine was started
/// anew is not in force any more. With its line end; "": the boot has no id.
[[nodiscard]] std::string header();
[[nodiscard]] bool is_header(std::string_view line);
/// The boot that a file is of, by its first line.
enum class FileBoot : std::uint8_t {
    ours,    ///< or empty
    damaged, ///< the line is, and does not prove that it is of another one
    another, ///< nothing in it is in force
};
[[nodiscard]] FileBoot boot_of(std::string_view text);

} // namespace affinityd::state
