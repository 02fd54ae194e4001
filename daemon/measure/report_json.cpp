// SPDX-License-Identifier: Apache-2.0
#include "measure/report_json.hpp"

namespace affinityd::measure {

using nlohmann::json;

namespace {

json end_json(const std::optional<EndReport>& end) {
    if (!end) return nullptr;
    return {{"bytes", end->bytes},
            {"calls", end->calls},
            {"user_seconds", end->user_seconds},
            {"system_seconds", end->system_seconds},
            {"voluntary_switches", end->voluntary_switches},
            {"involuntary_switches", end->involuntary_switches},
            {"migrations", or_null(end->migrations)},
            {"retransmits", or_null(end->retransmits)},
            {"cycles", or_null(end->cycles)},
            {"instructions", or_null(end->instructions)},
            {"cache_misses", or_null(end->cache_misses)}};
}

} // namespace

json to_json(const std::vector<CpuReport>& cpus) {
    json list = json::array();
    for (const auto& cpu : cpus)
        list.push_back({{"cpu", cpu.cpu},
                        {"user_seconds", cpu.user_seconds},
                        {"system_seconds", cpu.system_seconds},
                        {"irq_seconds", cpu.irq_seconds},
                        {"softirq_seconds", cpu.softirq_seconds},
                        {"interrupts", cpu.interrupts}});
    return list;
}

json to_json(const std::vector<LineReport>& lines) {
    json list = json::array();
    for (const auto& line : lines)
        list.push_back({{"irq", line.irq}, {"label", line.label}, {"cpu", line.cpu}, {"count", line.count}});
    return list;
}

std::string to_json(const Report& report) {
    const json value{{"version", report_version},
                     {"kind", "ttcp"},
                     {"outcome", to_string(report.outcome)},
                     {"reason", report.reason},
                     {"path", report.setup.path},
                     {"touches_nic_interrupts", report.setup.touches_nic_interrupts},
                     {"streams", report.setup.streams},
                     {"buffer_bytes", report.setup.buffer_bytes},
                     {"seconds", report.seconds},
                     {"bytes", report.bytes},
                     {"bits_per_second", report.bits_per_second},
                     {"transmitter", end_json(report.transmitter)},
                     {"receiver", end_json(report.receiver)},
                     {"ghz_per_gbps", or_null(report.ghz_per_gbps)},
                     {"cycles_source", report.cycles_source},
                     {"cpus", to_json(report.cpus)},
                     {"lines", to_json(report.lines)}};
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace affinityd::measure
