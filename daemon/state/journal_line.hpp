// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"

#include <concepts>
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

} // namespace affinityd::state
