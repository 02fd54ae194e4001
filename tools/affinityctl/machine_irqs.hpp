// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.hpp"
#include "irq/irq.hpp"
#include "netdev/nic.hpp"
#include "verb.hpp"

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

namespace affinityctl {

/// What `irqs` and `nics` look at, read without the daemon.
struct MachineIrqs {
    affinityd::irq::InterruptTable table;
    std::vector<affinityd::netdev::Nic> nics;
    std::optional<affinityd::irq::InterruptTable> before; ///< an earlier reading, for rates
    double seconds = 0;                                   ///< between the two
};

/// Reads --root or this machine. With an interval the table is read twice that far apart, which only a live
/// machine can do.
[[nodiscard]] affinityd::Result<MachineIrqs>
read_machine_irqs(const Globals& globals, std::optional<std::chrono::milliseconds> interval);

/// Per second and CPU since the earlier reading, CPUs without any left out: {"0": 12.5}. null without an
/// earlier reading.
[[nodiscard]] nlohmann::json rates_of(const MachineIrqs& machine, const affinityd::irq::Irq& line);
/// Counts since boot by CPU, zeroes left out.
[[nodiscard]] nlohmann::json counts_of(const MachineIrqs& machine, const affinityd::irq::Irq& line);
/// Sum of what counts_of or rates_of give.
[[nodiscard]] double sum_of(const nlohmann::json& by_cpu);
/// "cpu3 1200/s, cpu0 2/s": the busiest CPUs first, at most `limit`.
[[nodiscard]] std::string busiest(const nlohmann::json& by_cpu, std::size_t limit, std::string_view unit);

/// "0-3", or null where nothing was read.
[[nodiscard]] nlohmann::json list_or_null(const std::optional<affinityd::CpuSet>& cpus);

/// A value as a cell of a table; "-" for null and empty text.
[[nodiscard]] std::string cell(const nlohmann::json& value);

/// requested, effective, hint, writable, chip, count, counts, rate: the part that both verbs print of a line.
void add_line(nlohmann::json& into, const MachineIrqs& machine, const affinityd::irq::Irq& line);

} // namespace affinityctl
