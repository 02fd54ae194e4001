// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "irq/irq.hpp"

#include <string_view>

namespace affinityd::host {
class Root;
}

namespace affinityd::irq {

/// Parses the text of /proc/interrupts: any architecture's, with or without header. Lines that fit no form
/// are passed over.
[[nodiscard]] InterruptTable parse_interrupts(std::string_view text);

/// Applies the table of driver patterns to one action name (reference: docs/ARCHITECTURE.md, "irq").
[[nodiscard]] Label parse_label(std::string_view action);

/// /proc/interrupts and, where they are there, the files of /proc/irq/N; lines that the table lacks are taken
/// from the handlers' directories there. A recording with neither gives an empty table. An Error: the table
/// or a directory is there and cannot be read.
[[nodiscard]] Result<InterruptTable> read_interrupts(const host::Root& root);

} // namespace affinityd::irq
