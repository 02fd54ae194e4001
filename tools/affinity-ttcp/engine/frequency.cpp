// SPDX-License-Identifier: Apache-2.0
#include "affinity-ttcp/engine/frequency.hpp"

#include "base/text.hpp"
#include "host/root.hpp"

#include <charconv>
#include <string_view>

#include <fmt/format.h>

namespace affinityd::ttcp {

namespace {

std::optional<double> parse_decimal(std::string_view text) {
    double value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc{} || end != text.data() + text.size() || !(value > 0)) return std::nullopt;
    return value;
}

struct Mean {
    double sum = 0;
    unsigned count = 0;
    void add(double value) { sum += value, ++count; }
    [[nodiscard]] std::optional<double> value() const {
        return count == 0 ? std::nullopt : std::optional(sum / count);
    }
};

std::optional<double> by_cpufreq(const host::Root& root) {
    Mean mean;
    for (const unsigned cpu : root.sys().cpu_list("devices/system/cpu/online").value_or(CpuSet{})) {
        const auto khz =
            root.sys().number(fmt::format("devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", cpu));
        if (khz && *khz > 0) mean.add(static_cast<double>(*khz) * 1e3);
    }
    return mean.value();
}

std::optional<double> by_cpuinfo(const host::Root& root) {
    const auto text = root.proc().read("cpuinfo");
    if (!text || !*text) return std::nullopt;
    Mean mean;
    for (const auto line : split(**text, '\n')) {
        const auto colon = line.find(':');
        if (!line.starts_with("cpu MHz") || colon == std::string_view::npos) continue;
        if (const auto mhz = parse_decimal(trim_text(line.substr(colon + 1)))) mean.add(*mhz * 1e6);
    }
    return mean.value();
}

} // namespace

std::optional<double> read_frequency(const host::Root& root) {
    const auto hz = by_cpufreq(root);
    return hz ? hz : by_cpuinfo(root);
}

} // namespace affinityd::ttcp
