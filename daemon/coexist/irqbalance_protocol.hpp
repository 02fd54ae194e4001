// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::coexist {

// What is said over irqbalance's socket. Source: irqbalance(1), "API".

inline constexpr std::string_view setup_request = "setup";
inline constexpr std::size_t longest_answer = 65536;

/// The request that replaces the list of banned interrupts. No value: the list is longer than irqbalance
/// reads (255 bytes).
[[nodiscard]] std::optional<std::string> ban_request(const std::vector<unsigned>& irqs);

/// The interrupts of "SLEEP 10 IRQ 30 LOAD 0 DIFF 0 CLASS 5 ... BANNED 0", which answers "setup", in
/// ascending order. Accepts any bytes.
[[nodiscard]] std::vector<unsigned> parse_irqbalance_setup(std::string_view text);

/// True if the text begins as an answer to "setup" does.
[[nodiscard]] bool is_setup_answer(std::string_view text);

/// True for "irqbalance812.sock".
[[nodiscard]] bool is_irqbalance_socket(std::string_view name);

/// irqbalance's own lists of banned interrupts, by the name of its socket, each ascending.
using BannedLists = std::map<std::string, std::vector<unsigned>>;

/// One line for each socket: its name and its interrupts, divided by spaces.
[[nodiscard]] std::string print_record(const BannedLists& lists);
/// The reverse; what cannot be read is left out.
[[nodiscard]] BannedLists parse_record(std::string_view text);

} // namespace affinityd::coexist
