// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/cpu_set.hpp"
#include "base/error.hpp"
#include "base/model.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace affinityd::ttcp {

/// In the order of reports. run_round() carries a model out.
inline constexpr std::array<Model, 4> all_models{Model::none, Model::irq, Model::process, Model::full};
[[nodiscard]] std::optional<Model> parse_model(std::string_view text);
[[nodiscard]] constexpr bool binds_interrupts(Model model) {
    return model == Model::irq || model == Model::full;
}
[[nodiscard]] constexpr bool binds_processes(Model model) {
    return model == Model::process || model == Model::full;
}

/// The CPU of connection `index` of `count`. Connections with adjacent numbers share one, as in the paper (of
/// 8 on 2 CPUs, 0 to 3 get the first). `cpus` must not be empty.
[[nodiscard]] unsigned cpu_of(unsigned index, unsigned count, const CpuSet& cpus);

/// The order in which so many cells (models, or models at points) run, `rounds` times each: forward, then
/// backward, and so on, so that a steady drift affects all equally. The numbers are positions, since a model
/// may be listed twice (an A/A run).
[[nodiscard]] std::vector<std::size_t> interleave(std::size_t cells, unsigned rounds);

/// The work of the system under test.
enum class Work {
    receive,
    transmit,
    answer, ///< requests of its peers, each of which waits for the response before it asks again
};
[[nodiscard]] std::string_view to_string(Work work); ///< "receive", "transmit", "answer"

/// A point of the experiment's curves.
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
