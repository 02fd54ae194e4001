// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::ttcp {

/// What the system under test does.
enum class Work {
    receive,
    transmit,
    answer, ///< requests of its peers, each of which waits for the response before it asks again
};
[[nodiscard]] std::string_view to_string(Work work); ///< "receive", "transmit", "answer"

/// One point of the experiment's curves.
struct LoadPoint {
    Work work = Work::receive;
    std::size_t bytes = 65536;      ///< of one read and write, or of a request; 1 B to 64 MiB
    std::size_t response_bytes = 0; ///< with Work::answer
    friend bool operator==(const LoadPoint&, const LoadPoint&) = default;
};

/// The largest size.
inline constexpr std::size_t most_bytes = std::size_t{64} << 20;

/// The sizes of the paper's curve.
inline constexpr std::string_view paper_sizes = "128,1K,4K,16K,64K";

/// "128", "4K", "1M" (powers of 1024).
[[nodiscard]] Result<std::size_t> parse_size(std::string_view text);
/// Sizes between commas, or "all" for the paper's; in ascending order, each once.
[[nodiscard]] Result<std::vector<std::size_t>> parse_sizes(std::string_view text);
/// Work::answer with each REQUEST[:RESPONSE] between commas; a response is as large as its request unless
/// said.
[[nodiscard]] Result<std::vector<LoadPoint>> parse_exchanges(std::string_view text);

/// "128 B", "64 KiB".
[[nodiscard]] std::string size_text(std::size_t bytes);
/// The size alone: "64 KiB", or "1 B : 4 KiB" where a request has another size than its response.
[[nodiscard]] std::string size_text(const LoadPoint& point);

} // namespace affinityd::ttcp
