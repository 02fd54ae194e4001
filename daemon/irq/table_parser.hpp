// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "irq/irq.hpp"

#include <string_view>

namespace affinityd::irq {

/// Reads the text of /proc/interrupts a line at a time: any architecture's, with or without header. Lines
/// that fit no form are passed over. Source: kernel/irq/proc.c, show_interrupts.
class TableParser {
  public:
    /// The next line, without its line feed.
    void take(std::string_view line);
    /// What the lines say; to be called once, after the last one.
    [[nodiscard]] InterruptTable finish();

  private:
    InterruptTable table_;
    bool has_header_ = false;
};

/// All of it at once.
[[nodiscard]] InterruptTable parse_interrupts(std::string_view text);

} // namespace affinityd::irq
